"""Orders over HTTP: freeze, thaw, ramp, go live, close. Each needs the scope admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from c4b.deployment import Deployment, Status
from c4b.errors import InvalidInput
from c4b.service import responses, schemas
from c4b.service.access.authorization import requires
from c4b.service.access.token_verifier import UNPROTECTED, Grant
from c4b.service.access.tokens import Scope
from c4b.service.routes import PROBLEMS, Name, queued_deployment

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


@router.post("/deployments/{name}/orders", tags=["deployments"], summary="Freeze, thaw, ramp, close")
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
