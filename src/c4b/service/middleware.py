"""What stands before every request: an id, bounds on size and time, a line in the log, a measurement."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from c4b.service import problems
from c4b.service.monitoring import request_log as logs
from c4b.service.problems import Refused

_TELLABLE = re.compile(r"[A-Za-z0-9._:/+=@-]{1,100}")
_SLOW = re.compile(r"/v1/deployments/[^/]+/(audit|export)")
"""What may take as long as it needs."""
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_POLICY = b"default-src 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'"
_DOCS_POLICY = _POLICY + b"; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'"
_LOCAL = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)

Measure = Callable[[str, str, int, float], None]


class Guard:
    """ASGI middleware, outermost. A refusal never reaches the application."""

    def __init__(
        self,
        app: ASGIApp,
        body_bytes: int,
        seconds: float,
        local_only: Callable[[], Awaitable[bool]],
        measure: Measure,
    ) -> None:
        self.app = app
        self.body_bytes = body_bytes
        self.seconds = seconds
        self.local_only = local_only
        self.measure = measure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        asked = headers.get(b"x-request-id", b"").decode("latin-1")
        name = asked if _TELLABLE.fullmatch(asked) else uuid.uuid4().hex
        logs.request_id.set(name)
        began = time.perf_counter()
        answered = 0
        complete = b"content-length" not in headers and b"transfer-encoding" not in headers

        async def told(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = message["status"]
                policy = _DOCS_POLICY if scope["path"] == "/docs" else _POLICY
                own = [*_HEADERS, (b"content-security-policy", policy), (b"x-request-id", name.encode())]
                given = {key for key, _ in message.get("headers", [])}
                kept = [pair for pair in own if pair[0] not in given]
                message = {**message, "headers": [*message.get("headers", []), *kept]}
            await send(message)

        size = 0

        async def limited() -> Message:
            nonlocal size, complete
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if size > self.body_bytes:
                    raise _too_large(self.body_bytes)
            return message

        async def refuse(error: Refused) -> None:
            if not answered:  # after the first byte of an answer there is no taking it back
                answer: JSONResponse = problems.refused(error)
                if error.status_code == 408:  # else what is still to come is read and thrown away
                    answer.headers["Connection"] = "close"
                await answer(scope, receive, told)

        patience = None if _SLOW.fullmatch(scope["path"]) else self.seconds
        try:
            await self._check(scope, headers)
            async with asyncio.timeout(patience):
                await self.app(scope, limited, told)
        except Refused as error:
            await refuse(error)
        except TimeoutError:
            await refuse(_too_slow(complete, self.seconds))
        except Exception:  # noqa: BLE001 (whatever it is, the client hears that it happened)
            logs.logger.exception("a defect: this must not happen")
            await refuse(Refused(500, "defect", f"an error of the service; the log has request {name}"))
        finally:
            self._tell(scope, answered, time.perf_counter() - began)

    async def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.body_bytes:
            raise _too_large(self.body_bytes)
        # a page elsewhere can make a browser send requests here under a name of its own
        if not _from_here(scope, headers) and await self.local_only():
            detail = "without tokens only this machine is served, as localhost; see `c4b token create`"
            raise Refused(403, "loopback-only", detail)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        route: Any = scope.get("route")
        path = getattr(route, "path", None) or "(none)"
        self.measure(scope["method"], path, status, seconds)
        logs.say(
            "request",
            method=scope["method"],
            path=scope["path"][:300],
            status=status or 499,  # the client went away
            milliseconds=round(seconds * 1e3, 3),
            token=scope.get("state", {}).get("token"),
        )


def _from_here(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    host, _ = scope.get("client") or ("", 0)
    named = headers.get(b"host", b"").decode("latin-1")
    return bool(_LOCAL.fullmatch(named)) and bool(host) and ip_address(host).is_loopback


def _too_large(limit: int) -> Refused:
    return Refused(413, "payload-too-large", f"a request has at most {limit} bytes; split it")


def _too_slow(complete: bool, seconds: float) -> Refused:
    if not complete:
        return Refused(408, "too-slow", f"the request did not arrive within {seconds:g} s")
    detail = (
        f"no answer within {seconds:g} s; it may have been carried out: "
        "repeat it with the same Idempotency-Key to learn"
    )
    return Refused(504, "no-answer-in-time", detail)
