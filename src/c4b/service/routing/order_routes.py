"""Routes for admins only, about an existing deployment: orders, erasures, a successor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import AwareDatetime, Field, Strict
from starlette.concurrency import run_in_threadpool

from c4b.deployment import Deployment, Status
from c4b.errors import InvalidInput
from c4b.service import schemas
from c4b.service.access.authorization import requires
from c4b.service.access.token_verifier import UNPROTECTED, Grant
from c4b.service.access.tokens import Scope
from c4b.service.routing import responses
from c4b.service.routing.problems import Refused
from c4b.service.routing.routes import PROBLEMS, Name, queued_deployment

router = APIRouter(prefix="/v1", route_class=requires(Scope.admin), responses=PROBLEMS)


class Order(schemas.RequestBody):
    """What shall be in force from the next decision on. Repeating an order is harmless."""

    action: Literal["freeze", "thaw", "ramp", "go-live", "close"] = Field(examples=["freeze"])
    why: str = Field(max_length=500, examples=["checkout is down"])
    by: str | None = Field(
        None, max_length=400, description="Who orders it. The token's id is recorded in any case."
    )
    share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Of a ramp: the most of all rounds that may leave the incumbent.",
        examples=[None],
    )


class Erasure(schemas.RequestBody):
    """Which contexts are erased: of one request, or of all decisions before a time."""

    request_id: str | None = Field(None, max_length=200, examples=["visit-4711"])
    before: Annotated[AwareDatetime, Strict(False)] | None = Field(None, examples=[None])


class Erased(schemas.ResponseBody):
    """Contexts that are gone."""

    erased: int


class Succession(schemas.RequestBody):
    """A successor with the same model and settings."""

    successor: str = Field(max_length=100, examples=["homepage-2"])
    why: str = Field(max_length=500, examples=["a new model"])
    by: str | None = Field(None, max_length=400)
    reserve: float | None = Field(
        None, ge=0, description="At most what is certified to be left, which is the default."
    )
    policy: str | None = Field(None, description="If not given, the predecessor's.")


@router.post(
    "/deployments/{name}/orders", tags=["deployments"], summary="Freeze, thaw, ramp, go live, close"
)
async def order(request: Request, name: Name, body: Order) -> schemas.Deployment:
    """Recorded in the journal with who and why. `close` is for good."""
    if (body.action == "ramp") != (body.share is not None):
        raise InvalidInput("share", body.share, "is needed for a ramp, and for nothing else")
    queued = await queued_deployment(request, name)
    by, dep = _who(request.state.grant, body.by), queued.deployment
    if body.share is not None:
        await queued.write(dep.ramp, body.share, body.why, by)
    else:
        await queued.write(_command(dep, body.action), body.why, by)
    return await run_in_threadpool(responses.deployment, dep)


@router.post("/deployments/{name}/erasures", tags=["deployments"], summary="Erase contexts")
async def erase(request: Request, name: Name, body: Erasure) -> Erased:
    """The hash chain stays whole: it holds a salted hash of each context, and the text lies beside it."""
    if (body.request_id is None) == (body.before is None):
        raise InvalidInput("request_id", body.request_id, "give either request_id or before")
    queued = await queued_deployment(request, name)
    if body.request_id is not None:
        return Erased(erased=await queued.write(queued.deployment.erase_context, body.request_id))
    return Erased(erased=await queued.write(queued.deployment.erase_contexts, body.before))


@router.post("/deployments/{name}/successor", tags=["deployments"], summary="Start a successor")
async def succeed(request: Request, name: Name, body: Succession) -> schemas.Deployment:
    """Close it, and start its successor with what it learned and the rest of its reserve. Needs a token
    for the whole store, if there are tokens. Repeat it if it was interrupted."""
    grant: Grant = request.state.grant
    if not grant.covers(Scope.admin, body.successor):
        raise Refused(403, "forbidden", f"the token does not cover {body.successor!r}")
    queued = await queued_deployment(request, name)
    backend = request.app.state.deployments.backend
    options: dict[str, Any] = {} if body.policy is None else {"policy": body.policy}
    start = partial(Deployment.successor, reserve=body.reserve, by=_who(grant, body.by), **options)
    new = await queued.write(start, backend, name, body.successor, body.why)
    try:
        return await run_in_threadpool(responses.deployment, new)
    finally:
        new.close()


def _command(dep: Deployment, action: str) -> Callable[[str, str], Status]:
    return {
        "freeze": dep.freeze,
        "thaw": dep.thaw,
        "go-live": dep.go_live,
        "close": dep.close_decisions,
    }[action]


def _who(grant: Grant, by: str | None) -> str:
    token = "the service, without a token" if grant is UNPROTECTED else f"token {grant.token}"
    return token if by is None else f"{by} ({token})"
