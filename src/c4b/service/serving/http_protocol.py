"""uvicorn's HTTP protocol with time limits for slow clients and a limit on the size of headers.

uvicorn closes a connection that is silent between two requests, but a single byte after a response makes
it wait without limit. It accepts headers of any size, and it keeps a response that the client does not
read in memory. With this class, a client that does any of this loses its connection after some seconds.
"""

from __future__ import annotations

import asyncio
from functools import cache, partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from c4b.service.settings import Settings

ANSWER = "c4b.answer"
"""Name of an ASGI extension: a function that sends a whole response with status 200 at once. It takes
the lines of the headers, which the caller knows to be valid, and the body; without it uvicorn checks
every header of every response. It returns False, having sent nothing, if the response cannot be sent
like this. Then the caller sends it as usual."""
HEADER_SECONDS = 10.0
HEADER_BYTES = 65_536
"""Limit for one request. It is exceeded by at most one read from the network."""


@cache
def _request_seconds() -> float:
    return Settings.from_environment().seconds


class TimeLimitedProtocol(HttpToolsProtocol):
    """An HTTP connection with time limits.

    While no request is being answered, the client has ``HEADER_SECONDS``, or the time limit of a request
    if that is shorter, to complete its next headers. A client that does not read a response has the time
    limit of a request to read what is in the buffer.
    """

    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _unused = 0  # bytes since the last headers or the last piece of a body
    _answered: Any = None  # the request that is being answered, the first of several pipelined ones

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_write_timer()
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True  # super() notifies the last pipelined request only
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unused += len(data)
        super().data_received(data)
        if self._unused > HEADER_BYTES and not self.transport.is_closing():
            self.logger.warning("Headers too large.")
            self.transport.write(STATUS_LINE[431] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
        if self._header_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._start_header_timer()  # the last request is answered; super() stopped its own timer

    def on_headers_complete(self) -> None:
        self._stop_header_timer()
        self._unused = 0
        super().on_headers_complete()
        scope: Any = self.scope  # uvicorn's type names no extension but its own
        scope["extensions"] = {ANSWER: partial(self._answer, self.cycle)}
        if not self.pipeline:
            self._answered = self.cycle

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._answered = self.pipeline[-1][0]
        super().on_response_complete()

    def _answer(self, cycle: RequestResponseCycle, headers: bytes, body: bytes) -> bool:
        """See ``ANSWER``."""
        if (
            cycle.response_started
            or cycle.disconnected
            or not cycle.keep_alive
            or self.flow.write_paused
            or self.transport.is_closing()
        ):
            return False
        own = b"".join([b"%b: %b\r\n" % pair for pair in cycle.default_headers])
        self.transport.write(b"%b%b%b\r\n%b" % (STATUS_LINE[200], own, headers, body))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        cycle.on_response()
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_write_timer()
        self._write_timer = self.loop.call_later(_request_seconds(), self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()

    def _start_header_timer(self) -> None:
        seconds = min(HEADER_SECONDS, _request_seconds())
        self._header_timer = self.loop.call_later(seconds, self._close_idle)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _close_idle(self) -> None:
        self._header_timer = None
        if not self.transport.is_closing():
            self.transport.close()
