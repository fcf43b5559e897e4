"""uvicorn's HTTP protocol with patience that ends, and a bound on headers.

uvicorn closes a connection that is silent between two requests; one byte after an answer, and it waits
for ever. It keeps headers of any size. And an answer that nobody takes stays in memory. With this,
thousands of clients that do such things hold their connections for seconds.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from c4b.service.settings import Settings

HEADER_SECONDS = 10.0
HEADER_BYTES = 65_536
"""Of one request, give or take one read from the network."""


@cache
def _request_seconds() -> float:
    return Settings.from_environment().seconds


class PatientProtocol(HttpToolsProtocol):
    """While nobody is served a client has ``HEADER_SECONDS``, or the time of one request if that is
    less, until its next headers are complete. Whoever does not take an answer has the time of one
    request to take what is in the buffer."""

    _impatience: asyncio.TimerHandle | None = None
    _blocked: asyncio.TimerHandle | None = None
    _unused = 0  # bytes since the last headers or the last piece of a body
    _served: Any = None  # of several requests in a row the one that is being answered

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._unblock()
        if self._served is not None and not self._served.response_complete:
            self._served.disconnected = True  # super() tells only the last one that was sent
            self._served.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unused += len(data)
        super().data_received(data)
        if self._unused > HEADER_BYTES and not self.transport.is_closing():
            self.logger.warning("Headers too large.")
            self.transport.write(STATUS_LINE[431] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
        if self._impatience is None and (self.cycle is None or self.cycle.response_complete):
            self._wait()  # the request before is answered, and super() has ended its own patience

    def on_headers_complete(self) -> None:
        self._stop()
        self._unused = 0
        super().on_headers_complete()
        if not self.pipeline:
            self._served = self.cycle

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._served = self.pipeline[-1][0]
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unblock()
        self._blocked = self.loop.call_later(_request_seconds(), self.transport.abort)

    def resume_writing(self) -> None:
        self._unblock()
        super().resume_writing()

    def _wait(self) -> None:
        seconds = min(HEADER_SECONDS, _request_seconds())
        self._impatience = self.loop.call_later(seconds, self._give_up)

    def _stop(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None

    def _unblock(self) -> None:
        if self._blocked is not None:
            self._blocked.cancel()
            self._blocked = None

    def _give_up(self) -> None:
        self._impatience = None
        if not self.transport.is_closing():
            self.transport.close()
