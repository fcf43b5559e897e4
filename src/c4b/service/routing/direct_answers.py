"""Answer plain requests to decide or to report an outcome without a task of their own.

For most requests the body arrives at once, the token is known, and the deployment is open. Then the
server has to wait for nothing but the commit, and a task, with its time limit, its events and its layers
of coroutines, costs more than the decision. Such a request is started in the callback of the connection
that completes its body, and answered in the callback of its commit, after the same checks in the same
order as in ``HotRoutes``.

If a check fails, ``HotRoutes`` gets the request as if nothing had happened. It also gets a request whose
answer is an error or late; it then waits for the work that was started here.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

from starlette.types import Scope

from c4b.service import middleware
from c4b.service.access import authorization
from c4b.service.access.token_verifier import TokenVerifier
from c4b.service.access.tokens import Scope as Access
from c4b.service.middleware import RequestMiddleware
from c4b.service.monitoring import request_log
from c4b.service.routing.hot_routes import JSON_LINES, Hot, HotRoutes
from c4b.service.serving.http_protocol import BEGAN, BEGUN


class Exchange(Protocol):
    """One request and its response."""

    scope: Scope

    def answer(self, headers: bytes, body: bytes) -> bool:
        """Send a response with status 200, as the extension ``ANSWER`` does."""
        ...

    def start_task(self) -> None:
        """Leave the request to the application, in a task."""
        ...


class _Begun:
    """A request whose commit is under way."""

    __slots__ = ("due", "exchange", "hot", "request_id", "result")

    def __init__(
        self, exchange: Exchange, hot: Hot, request_id: str, result: asyncio.Future[Any], due: float
    ) -> None:
        self.exchange, self.hot, self.request_id = exchange, hot, request_id
        self.result, self.due = result, due


class DirectAnswers:
    """Begins requests that ``HotRoutes`` takes, and answers them."""

    def __init__(self, state: Any, hot_routes: HotRoutes, around: RequestMiddleware) -> None:
        """state: of the application. around: the middleware of ``hot_routes``."""
        self._state = state
        self._hot_routes = hot_routes
        self._around = around
        self._under_way: dict[_Begun, None] = {}  # in order of their beginning
        self._timer: asyncio.TimerHandle | None = None

    def takes(self, scope: Scope) -> bool:
        """Whether a request may be begun here once its body is complete."""
        return self._hot_routes.takes(scope)

    def begin(self, exchange: Exchange, body: bytes) -> bool:
        """Begin a request whose whole body is there. Returns False, and has done nothing, if that is not
        possible at once or if the request has to be refused."""
        try:
            begun = self._begun(exchange, body)
        except Exception:  # noqa: BLE001 (nothing has begun; the other way finds it again and tells it)
            return False
        if begun is None:
            return False
        self._under_way[begun] = None
        if self._timer is None:
            self._start_timer(begun.due)
        begun.result.add_done_callback(lambda _: self._finish(begun))
        return True

    def _begun(self, exchange: Exchange, body: bytes) -> _Begun | None:
        scope, around = exchange.scope, self._around
        headers = dict(scope["headers"])
        if len(headers) < len(scope["headers"]) or len(body) > around.body_bytes:
            return None  # which of two headers with one name counts is not decided here
        verifier: TokenVerifier = self._state.token_verifier
        if verifier.claim_refresh():
            asyncio.get_running_loop().run_in_executor(None, verifier.refresh)
        if verifier.stale or (not middleware.is_local(scope, headers) and verifier.unprotected):
            return None
        grant = verifier.grant(authorization.token_of(headers))
        name = scope["path_params"]["name"]
        if grant is None or grant.rate is not None or not grant.covers(Access.decide, name):
            return None
        authorization.require_json(scope["method"], headers)
        queued = self._state.deployments.get(name)
        if queued is None:
            return None
        hot, request_id = self._hot_routes.of(scope), middleware.request_id_of(headers)
        due = scope[BEGAN] + around.seconds
        result = hot.begin(queued, scope, headers, body)  # from here on nothing may fail
        if result is None:
            return None
        scope["state"]["token"] = grant.token
        return _Begun(exchange, hot, request_id, result, due)

    def _finish(self, begun: _Begun) -> None:
        """Answer, if all is well and the client still reads."""
        if self._under_way.pop(begun, self) is self:  # it was late, and left to a task
            return
        result, exchange = begun.result, begun.exchange
        if result.cancelled() or result.exception() is not None:
            self._leave(begun)
            return
        request_log.request_id.set(begun.request_id)
        body = begun.hot.render(result.result())
        lines = b"%b%b" % (JSON_LINES % len(body), middleware.header_lines(begun.request_id))
        if exchange.answer(lines, body):
            self._around.report(exchange.scope, 200, time.perf_counter() - exchange.scope[BEGAN])
        else:
            self._leave(begun)

    def _leave(self, begun: _Begun) -> None:
        begun.exchange.scope[BEGUN] = begun.result
        begun.exchange.start_task()

    def _start_timer(self, due: float) -> None:
        seconds = max(0.0, due - time.perf_counter())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._leave_late)

    def _leave_late(self) -> None:
        """The middleware answers what was not answered in time."""
        self._timer = None
        now = time.perf_counter()
        for begun in list(self._under_way):
            if begun.due > now:
                self._start_timer(begun.due)
                return
            del self._under_way[begun]
            self._leave(begun)
