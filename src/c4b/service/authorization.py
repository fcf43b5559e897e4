"""Who may use a route: checked before the body is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool

from c4b.service.problems import Refused
from c4b.service.tokens import Gatekeeper, Grant, Scope


class _JSONRequest(Request):
    """A body parsed by a parser with a bound on nesting, that takes no NaN."""

    async def json(self) -> Any:
        try:
            return from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error


def behind(scope: Scope) -> type[APIRoute]:
    """A class of routes that need ``scope``, on the deployment ``{name}`` if the path has one."""

    class Guarded(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def guarded(request: Request) -> Response:
                request.state.grant = await _granted(request, scope)
                _only_json(request)
                return await handle(_JSONRequest(request.scope, request.receive))

            return guarded

    return Guarded


def _only_json(request: Request) -> None:
    """Refuse a body of another kind: a page elsewhere can make a browser send forms and text here."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    bare = (
        request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
    )
    packed = request.headers.get("content-encoding", "identity")
    if packed != "identity":
        raise Refused(415, "unsupported-media-type", f"send it as it is, not as {packed[:50]!r}")
    if request.method in ("POST", "PUT") and kind != "application/json" and (kind or not bare):
        detail = f"send application/json, not {kind!r}" if kind else "say Content-Type: application/json"
        raise Refused(415, "unsupported-media-type", detail[:200])


async def _granted(request: Request, scope: Scope) -> Grant:
    keeper: Gatekeeper = request.app.state.keeper
    kind, _, bearer = request.headers.get("authorization", "").partition(" ")
    told = bearer.strip() if kind.lower() == "bearer" else None
    grant = await run_in_threadpool(keeper.grant, told) if keeper.stale else keeper.grant(told)
    if grant is None:
        detail = (
            "send the header `Authorization: Bearer TOKEN` with a valid token; "
            "`c4b token create` on the service's machine makes one"
        )
        raise Refused(401, "unauthorized", detail)
    request.state.token = grant.token
    if not grant.covers(scope, request.path_params.get("name", grant.deployment)):
        where = "" if grant.deployment is None else f" on {grant.deployment!r} only"
        detail = f"this needs scope {scope.name}; the token has {grant.scope.name}{where}"
        raise Refused(403, "forbidden", detail)
    return grant
