"""Routes that need a scope. The token is checked before the body is read and parsed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi._compat import ModelField
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import Scope as Connection

from c4b.errors import C4BError, InvalidInput
from c4b.service.access.token_verifier import Grant, TokenVerifier
from c4b.service.access.tokens import Scope
from c4b.service.routing.problems import Refused, without_details
from c4b.service.routing.request_body import LARGE, BodyParser

Headers = dict[bytes, bytes]
"""Of one request, by name in lower case."""


class _ParsedRequest(Request):
    """A request whose body is a validated value already."""

    def __init__(self, request: Request, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._json = value
        self._body = b"parsed"  # FastAPI asks for the value of a body that is not empty


def requires(scope: Scope, without_store: bool = False) -> type[APIRoute]:
    """Return a class of routes that need ``scope``, on the deployment ``{name}`` if the path has one.

    without_store: whether tokens that were known are enough while the store is not available. They may
    have been revoked since, so with ``request.state.store_error`` nothing of the store may be shown.
    """

    class AuthorizedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle, field = super().get_route_handler(), self.body_field
            known = [each.alias for each in self.dependant.query_params]
            is_of_api = self.path.startswith("/v1/")

            async def handle_authorized(request: Request) -> Response:
                value = await authorized_body(request.scope, scope, field, request.body, without_store)
                if is_of_api:  # elsewhere monitors may ask with parameters of their own
                    _check_parameters(request, known)
                return await handle(request if value is None else _ParsedRequest(request, value))

            return handle_authorized

    return AuthorizedRoute


def _check_parameters(request: Request, known: Sequence[str]) -> None:
    """Refuse unknown parameters: with a misspelt one the answer is another one than was asked for."""
    for name in request.query_params:
        if name not in known:
            remedy = f"is no parameter of this request, which takes {', '.join(known) or 'none'}"
            raise InvalidInput(name[:50], "(hidden: it may be a token)", remedy)


async def authorized_body(
    connection: Connection,
    scope: Scope,
    field: ModelField | None,
    read: Callable[[], Awaitable[bytes]],
    without_store: bool = False,
) -> Any:
    """The body of a request that has ``scope``, validated as ``field``; None if there is none.

    Leaves the grant and whether the body is large in the connection's state.
    """
    headers = dict(reversed(connection["headers"]))  # of several with one name the first counts
    state = connection.setdefault("state", {})
    state["grant"] = await _authorize(connection, headers, scope, without_store)
    require_json(connection["method"], headers)
    if field is None or not (body := await _complete(read)):
        return None
    state["large_body"] = len(body) >= LARGE
    parser: BodyParser = connection["app"].state.body_parser
    return await parser.parse(body, field)


async def _complete(read: Callable[[], Awaitable[bytes]]) -> bytes:
    try:
        return await read()
    except ClientDisconnect as error:
        raise Refused(400, "incomplete", "the connection ended before the body did") from error


def require_json(method: str, headers: Headers) -> None:
    """Refuse other media types: a foreign web page can make a browser send forms and text."""
    encoding = headers.get(b"content-encoding", b"identity")
    if encoding != b"identity":
        shown = encoding.decode("latin-1")[:50]
        raise Refused(415, "unsupported-media-type", f"send it as it is, not as {shown!r}")
    given = headers.get(b"content-type", b"")
    if given == b"application/json" or method not in ("POST", "PUT"):
        return
    kind = given.decode("latin-1").split(";")[0].strip().lower()
    empty = headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers
    if kind != "application/json" and (kind or not empty):
        detail = f"send application/json, not {kind!r}" if kind else "say Content-Type: application/json"
        raise Refused(415, "unsupported-media-type", detail[:200])


def token_of(headers: Headers) -> str | None:
    """The token that a request brings."""
    given = headers.get(b"authorization")
    if given is None:
        return None
    scheme, _, value = given.decode("latin-1").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


async def _authorize(
    connection: Connection, headers: Headers, scope: Scope, without_store: bool = False
) -> Grant:
    state = connection["app"].state
    verifier: TokenVerifier = state.token_verifier
    token = token_of(headers)
    try:
        if verifier.stale:
            grant = await run_in_threadpool(verifier.grant, token)
        else:
            grant = verifier.grant(token)
    except C4BError as error:
        grant = verifier.last_known_grant(token) if without_store else None
        if grant is None:
            raise without_details(error) from error
        connection["state"]["store_error"] = error
    if grant is None:
        client = connection.get("client")
        address = client[0] if client else ""
        allowed = float(state.deployments.settings.failures_per_minute)
        if not state.failed_authorizations.allows(address, allowed / 60.0, allowed):
            detail = "too many requests without a valid token came from this address; wait a minute"
            raise Refused(429, "too-many-failures", detail)
        detail = (
            "send the header `Authorization: Bearer TOKEN` with a valid token; "
            "`c4b token create` on the service's machine makes one"
        )
        raise Refused(401, "unauthorized", detail)
    connection["state"]["token"] = grant.token
    if grant.rate is not None and not state.token_rates.allows(
        grant.token, grant.rate, max(grant.rate, 1.0)
    ):
        raise Refused(429, "too-many-requests", f"the token allows {grant.rate:g} requests a second")
    if not grant.covers(scope, connection["path_params"].get("name", grant.deployment)):
        where = "" if grant.deployment is None else f" on {grant.deployment!r} only"
        detail = f"this needs scope {scope.name}; the token has {grant.scope.name}{where}"
        raise Refused(403, "forbidden", detail)
    return grant
