"""The two requests of every round, decide and report an outcome, without the framework's overhead.

The framework finds the route, resolves its parameters and validates its response for every request, which
costs more than the decision. This application has two routes. It calls what the framework would call, in
the same order: the authorization, the body's parser, the route's own function, the serializer of its
response, the descriptions of errors. The framework handles every other request: a body of unknown size, a
name or a key that is too long.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from c4b.deployment.limits import REQUEST_ID
from c4b.errors import C4BError
from c4b.service import schemas
from c4b.service.access.authorization import Headers, authorized_body
from c4b.service.access.tokens import Scope as Access
from c4b.service.commit_queue import QueuedDeployment
from c4b.service.routing import plain_round, problems, responses, routes
from c4b.service.routing.request_body import parsed
from c4b.service.serving.http_protocol import ANSWER, BEGUN

_PATH = re.compile(r"/v1/deployments/([^/]{1,100})/decisions(?:/([^/]{1,150})/outcome)?")
_KEY = b"idempotency-key"
JSON_LINES = b"content-length: %d\r\ncontent-type: application/json\r\n"


class Hot(NamedTuple):
    """A route that is answered here."""

    route: APIRoute
    answer: Callable[[Scope, Any], Awaitable[bytes]]
    """The response to a body that was parsed."""
    begin: Callable[[QueuedDeployment, Scope, Headers, bytes], asyncio.Future[Any] | None]
    """Parse and check a body and hand it to the commit queue. None: not in this way."""
    render: Callable[[Any], bytes]
    """The response for the result of what was begun."""


async def _decide(scope: Scope, body: schemas.Round) -> bytes:
    given = next((value for key, value in scope["headers"] if key == _KEY), None)
    deployments, name = scope["app"].state.deployments, scope["path_params"]["name"]
    round_, large = body.to_round(_key(given)), scope["state"]["large_body"]
    return responses.decided_json(await routes.decided(deployments, name, round_, large))


def _begin_decision(
    queued: QueuedDeployment, scope: Scope, headers: Headers, body: bytes
) -> asyncio.Future[Any] | None:
    round_ = plain_round.parsed(body, _key(headers.get(_KEY)))
    return None if round_ is None else queued.begin_decision(queued.deployment.request(round_))


def _key(given: bytes | None) -> str | None:
    return None if given is None else routes.utf_8(given.decode("latin-1"))


async def _observe(scope: Scope, body: schemas.Outcome) -> bytes:
    path = scope["path_params"]
    await routes.observe(Request(scope), path["name"], path["id"], body)
    return _DONE


def _begin_outcome(
    queued: QueuedDeployment, scope: Scope, headers: Headers, body: bytes
) -> asyncio.Future[Any] | None:
    field = _OUTCOME.body_field
    outcome: schemas.Outcome | None = None if field is None else parsed(body, field)
    if outcome is None or outcome.reward is None or outcome.lost or outcome.independent:
        return None
    return queued.begin_outcome(scope["path_params"]["id"], outcome.reward)


def _done(_: None) -> bytes:
    return _DONE


_DONE = schemas.Done().__pydantic_serializer__.to_json(schemas.Done())


def _route_of(endpoint: Callable[..., Any]) -> APIRoute:
    every = (route for router in routes.routers for route in router.routes)
    return next(each for each in every if isinstance(each, APIRoute) and each.endpoint is endpoint)


_OUTCOME = _route_of(routes.observe)


class HotRoutes:
    """An ASGI application that answers the decisions and outcomes that it ``takes``, and nothing else."""

    def __init__(self) -> None:
        decision = _route_of(routes.decide)
        self._hot = {
            "POST": Hot(decision, _decide, _begin_decision, responses.decided_json),
            "PUT": Hot(_OUTCOME, _observe, _begin_outcome, _done),
        }

    def of(self, scope: Scope) -> Hot:
        """The route of a request that it takes."""
        return self._hot[scope["method"]]

    def takes(self, scope: Scope) -> bool:
        """Whether it answers a request. Then ``scope`` has the route, by which the request is counted,
        and the parameters in its path."""
        if scope["type"] != "http" or (hot := self._hot.get(scope["method"])) is None:
            return False
        if scope.get("query_string"):  # neither takes parameters
            return False
        found = _PATH.fullmatch(scope["path"])
        if found is None or (found[2] is None) is (hot.answer is _observe):
            return False
        headers = dict(scope["headers"])
        plain = headers.get(b"content-length", b"0").strip(b"0").isdigit()
        if not plain or b"transfer-encoding" in headers or len(headers.get(_KEY, b"")) > REQUEST_ID:
            return False
        scope["route"] = hot.route
        scope["path_params"] = (
            {"name": found[1]} if found[2] is None else {"name": found[1], "id": found[2]}
        )
        return True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hot, begun = self.of(scope), scope.get(BEGUN)
        try:
            if begun is None:
                body = await authorized_body(
                    scope, Access.decide, hot.route.body_field, _body_of(receive)
                )
                answer = await hot.answer(scope, body)
            else:
                answer = hot.render(await begun)
        except C4BError as error:
            await problems.library_error(error)(scope, receive, send)
        except RequestValidationError as error:
            await problems.validation_error(error)(scope, receive, send)
        else:
            await _send_json(scope, send, answer)


def _body_of(receive: Receive) -> Callable[[], Awaitable[bytes]]:
    """A function that reads the whole body, as ``Request.body`` does."""

    async def read() -> bytes:
        pieces, more = [], True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        return b"".join(pieces)

    return read


async def _send_json(scope: Scope, send: Send, body: bytes) -> None:
    answer = scope.get("extensions", {}).get(ANSWER)
    if answer is not None and answer(JSON_LINES % len(body), body):
        return
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
