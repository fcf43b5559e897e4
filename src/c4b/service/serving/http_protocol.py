"""uvicorn's HTTP protocol with time limits for slow clients and a limit on the size of headers.

uvicorn closes a connection that is silent between two requests, but a single byte after a response makes
it wait without limit. It accepts headers of any size, and it keeps a response that the client does not
read in memory. With this class, a client that does any of this loses its connection after some seconds.
"""

from __future__ import annotations

import asyncio
import time
from functools import cache, lru_cache, partial
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from c4b.service.settings import Settings

ANSWER = "c4b.answer"
"""Name of an ASGI extension: a function that sends a whole response with status 200 at once. It takes
the lines of the headers, which the caller knows to be valid, and the body; without it uvicorn checks
every header of every response. It returns False, having sent nothing, if the response cannot be sent
like this. Then the caller sends it as usual."""
BEGAN = "c4b.began"
"""Name in the scope of a request: when its headers were complete, by ``time.perf_counter``."""
BEGUN = "c4b.begun"
"""Name in the scope of a request whose body was read and which was begun already, by ``direct_answers``:
the future of its result."""
HEADER_SECONDS = 10.0
HEADER_BYTES = 65_536
"""Limit for one request. It is exceeded by at most one read from the network."""
DIRECT_BYTES = 32_768
"""Largest body of a request that is answered directly."""
BODY_SECONDS = 0.1
"""How long such a body is waited for before the request gets a task as others."""


@cache
def _request_seconds() -> float:
    return Settings.from_environment().seconds


@lru_cache(4)
def _lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """uvicorn's own headers, which change every second."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


class _Exchange:
    """A request that may be answered directly, and its response."""

    __slots__ = ("_cycle", "_protocol", "scope")

    def __init__(self, protocol: TimeLimitedProtocol, cycle: RequestResponseCycle) -> None:
        self._protocol, self._cycle = protocol, cycle
        self.scope: Any = cycle.scope

    def answer(self, headers: bytes, body: bytes) -> bool:
        """See ``ANSWER``."""
        return self._protocol.answer(self._cycle, headers, body)

    def start_task(self) -> None:
        """Leave the request to the application."""
        self._protocol.start_task(self._cycle)


class TimeLimitedProtocol(HttpToolsProtocol):
    """An HTTP connection with time limits.

    While no request is being answered, the client has ``HEADER_SECONDS``, or the time limit of a request
    if that is shorter, to complete its next headers. A client that does not read a response has the time
    limit of a request to read what is in the buffer.

    An application with ``direct_answers`` (``service.routing.direct_answers``) is asked to answer a
    request without a task, once its body is complete.
    """

    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _unused = 0  # bytes since the last headers or the last piece of a body
    _answered: Any = None  # the request that is being answered, the first of several pipelined ones
    _incomplete: RequestResponseCycle | None = None  # to be answered directly; its body is on its way
    _body_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_write_timer()
        self._start_incomplete()
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True  # super() notifies the last pipelined request only
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unused += len(data)
        super().data_received(data)
        if self._incomplete is not None:
            self._begin_if_complete(self._incomplete)
        if self._unused > HEADER_BYTES and not self.transport.is_closing():
            self.logger.warning("Headers too large.")
            self.transport.write(STATUS_LINE[431] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
        if self._header_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._start_header_timer()  # the last request is answered; super() stopped its own timer

    def on_headers_complete(self) -> None:
        self._stop_header_timer()
        self._unused = 0
        scope: Any = self.scope  # uvicorn's type names nothing but its own
        scope[BEGAN] = time.perf_counter()
        super().on_headers_complete()
        if not self.pipeline:
            self._answered = self.cycle

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Begin a request whose headers are complete and whose turn it is."""
        direct = getattr(app, "direct_answers", None)
        if direct is None or cycle.waiting_for_100_continue or not direct.takes(cycle.scope):
            self.start_task(cycle, app)
        elif cycle.more_body:
            self._incomplete = cycle
        else:
            self._begin(cycle)

    def start_task(self, cycle: RequestResponseCycle, app: ASGI3Application | None = None) -> None:
        """Let the application answer, or ``app`` in its place."""
        scope: Any = cycle.scope
        scope["extensions"] = {ANSWER: partial(self.answer, cycle)}
        super()._start_asgi_task(cycle, app or self.app)

    def _begin_if_complete(self, cycle: RequestResponseCycle) -> None:
        if not cycle.more_body:
            self._forget_incomplete()
            self._begin(cycle)
        elif len(cycle.body) > DIRECT_BYTES:
            self._start_incomplete()
        elif self._body_timer is None:
            self._body_timer = self.loop.call_later(BODY_SECONDS, self._start_incomplete)

    def _begin(self, cycle: RequestResponseCycle) -> None:
        direct: Any = getattr(self.app, "direct_answers", None)
        if len(cycle.body) > DIRECT_BYTES or not direct.begin(_Exchange(self, cycle), bytes(cycle.body)):
            self.start_task(cycle)

    def _start_incomplete(self) -> None:
        """Give a request whose body is late a task, which waits for it."""
        cycle = self._incomplete
        if cycle is not None:
            self._forget_incomplete()
            self.start_task(cycle)

    def _forget_incomplete(self) -> None:
        self._incomplete = None
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._answered = self.pipeline[-1][0]
        super().on_response_complete()

    def answer(self, cycle: RequestResponseCycle, headers: bytes, body: bytes) -> bool:
        """See ``ANSWER``."""
        if (
            cycle.response_started
            or cycle.disconnected
            or not cycle.keep_alive
            or self.flow.write_paused
            or self.transport.is_closing()
        ):
            return False
        own = _lines(tuple(cycle.default_headers))
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
