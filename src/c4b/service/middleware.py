"""ASGI middleware around every request: request id, limits on size and time, log line, metrics."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from c4b.service.monitoring import request_log
from c4b.service.routing import problems
from c4b.service.routing.problems import Refused
from c4b.service.serving.http_protocol import ANSWER, BEGAN, BEGUN

_SAFE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,100}")
_WITHOUT_TIME_LIMIT = re.compile(r"/v1/deployments/[^/]+/(audit|export)")
_CONTENT_POLICY = b"default-src 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'"
_DOCS_POLICY = _CONTENT_POLICY + b"; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'"
_HEADERS, _DOCS_HEADERS = (
    (
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", policy),
    )
    for policy in (_CONTENT_POLICY, _DOCS_POLICY)
)
_HEADER_LINES = b"".join(b"%b: %b\r\n" % pair for pair in _HEADERS)
_LOCAL_HOST = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)

_FORWARDED = {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"}
"""Headers that proxies add."""


def request_id_of(headers: dict[bytes, bytes]) -> str:
    """The client's id of a request, or a new one."""
    given = headers.get(b"x-request-id")
    if given is not None and _SAFE_REQUEST_ID.fullmatch(shown := given.decode("latin-1")):
        return shown
    return f"{random.getrandbits(128):032x}"


def header_lines(request_id: str) -> bytes:
    """The headers that every response has."""
    return b"%bx-request-id: %b\r\n" % (_HEADER_LINES, request_id.encode())


RecordRequest = Callable[[str, str, int, float], None]
"""Called with method, route, status and seconds of every request."""


class RequestMiddleware:
    """The outermost middleware. A request that it refuses does not reach the application."""

    def __init__(
        self,
        app: ASGIApp,
        body_bytes: int,
        seconds: float,
        local_only: Callable[[], Awaitable[bool]],
        record: RecordRequest,
    ) -> None:
        self.app = app
        self.body_bytes = body_bytes
        self.seconds = seconds
        self.local_only = local_only
        self.record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        request_id = request_id_of(headers)
        request_log.request_id.set(request_id)
        now = time.perf_counter()
        began: float = scope.get(BEGAN, now)
        status = 0  # of the response, once it has started
        without_body = b"content-length" not in headers and b"transfer-encoding" not in headers
        body_complete = without_body or BEGUN in scope

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answered = message.get("headers", [])
                present = {key for key, _ in answered}
                own = _DOCS_HEADERS if scope["path"] == "/docs" else _HEADERS
                added = [pair for pair in own if pair[0] not in present]
                added.append((b"x-request-id", request_id.encode()))
                message = {**message, "headers": [*answered, *added]}
            await send(message)

        extensions = scope.get("extensions", {})
        answer = extensions.get(ANSWER)
        if answer is not None:

            def answer_with_headers(lines: bytes, body: bytes) -> bool:
                nonlocal status
                answered: bool = answer(lines + header_lines(request_id), body)
                status = 200 if answered else status
                return answered

            extensions[ANSWER] = answer_with_headers
        size = 0

        async def receive_limited() -> Message:
            nonlocal size, body_complete
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                body_complete = not message.get("more_body", False)
                if size > self.body_bytes:
                    raise _too_large(self.body_bytes)
            return message

        async def refuse(error: Refused) -> None:
            if not status:  # a response that has started cannot be replaced
                response: JSONResponse = problems.refusal_response(error)
                if error.status_code == 408:  # otherwise uvicorn would read the rest of the body
                    response.headers["Connection"] = "close"
                await response(scope, receive, send_with_headers)

        time_limit = self.seconds - (now - began)
        try:
            await self._check(scope, headers)
            async with asyncio.timeout(
                None if _WITHOUT_TIME_LIMIT.fullmatch(scope["path"]) else time_limit
            ):
                await self.app(scope, receive_limited, send_with_headers)
        except Refused as error:
            await refuse(error)
        except TimeoutError:
            await refuse(_too_slow(body_complete, self.seconds))
        except Exception:  # noqa: BLE001 (the client gets status 500, whatever it is)
            request_log.logger.exception("a defect: this must not happen")
            detail = f"an error of the service; the log has request {request_id}"
            await refuse(Refused(500, "defect", detail))
        finally:
            extensions.pop(ANSWER, None)  # it refers to the request: a cycle for the garbage collector
            self.report(scope, status, time.perf_counter() - began)

    async def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.body_bytes:
            raise _too_large(self.body_bytes)
        # DNS rebinding: a foreign web page can make a browser send requests here under its own host name
        if not is_local(scope, headers) and await self.local_only():
            detail = "without tokens only this machine is served, as localhost; see `c4b token create`"
            raise Refused(403, "loopback-only", detail)

    def report(self, scope: Scope, status: int, seconds: float) -> None:
        """Record the request in the metrics and in the log."""
        route: Any = scope.get("route")
        path = getattr(route, "path", None) or "(none)"
        self.record(scope["method"], path, status, seconds)
        request_log.log_event(
            "request",
            method=scope["method"],
            path=scope["path"][:300],
            status=status or 499,  # the client closed the connection
            milliseconds=round(seconds * 1e3, 3),
            token=scope.get("state", {}).get("token"),
        )


def is_local(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether the request comes from this machine and is addressed to it by a local name.

    One that a proxy passed on came from elsewhere, and so did one that another site's page makes a
    browser send.
    """
    if not _FORWARDED.isdisjoint(headers):
        return False
    origin = headers.get(b"origin")
    if scope["method"] not in ("GET", "HEAD") and (
        headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none")
        or (origin is not None and origin.partition(b"://")[2] != headers.get(b"host"))
    ):
        return False
    client, _ = scope.get("client") or ("", 0)
    host = headers.get(b"host", b"").decode("latin-1")
    return bool(_LOCAL_HOST.fullmatch(host)) and bool(client) and _is_loopback(client)


@lru_cache(1024)
def _is_loopback(address: str) -> bool:
    return ip_address(address).is_loopback


def _too_large(limit: int) -> Refused:
    return Refused(413, "payload-too-large", f"a request has at most {limit} bytes; split it")


def _too_slow(body_complete: bool, seconds: float) -> Refused:
    if not body_complete:
        return Refused(408, "too-slow", f"the request did not arrive within {seconds:g} s")
    detail = (
        f"no answer within {seconds:g} s; it may have been carried out: "
        "repeat it with the same Idempotency-Key to learn"
    )
    return Refused(504, "no-answer-in-time", detail)
