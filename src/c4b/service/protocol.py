"""uvicorn's HTTP protocol with patience that ends: a connection whose headers do not arrive is closed.

uvicorn bounds idle connections between two requests only; without this, thousands of clients that send a
byte now and then would hold their connections for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0


class PatientProtocol(HttpToolsProtocol):
    """From its first byte (or from the connection) a request has ``HEADER_SECONDS`` for its headers."""

    _impatience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._impatience is None:
            self._wait()

    def on_headers_complete(self) -> None:
        self._stop()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._impatience = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None

    def _give_up(self) -> None:
        self._impatience = None
        if not self.transport.is_closing():
            self.transport.close()
