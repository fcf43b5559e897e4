"""REST under ``/v1``: thin, each route is one call of ``c4b.Deployment``."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from c4b.deployment import Deployment, Record, Status, export
from c4b.deployment.configuration import Configuration
from c4b.deployment.limits import REQUEST_ID
from c4b.errors import C4BError, InvalidInput, NameTaken, PayloadTooLarge
from c4b.evidence.model import LinearModel
from c4b.policies.decision import Decision
from c4b.service import schemas as m
from c4b.service.authorization import behind
from c4b.service.commit_queue import Desk
from c4b.service.monitoring.health import light
from c4b.service.open_deployments import Shelf
from c4b.service.problems import MEDIA_TYPE, Refused
from c4b.service.tokens import Grant, Scope

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": what,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, what in {
        400: "Not HTTP that can be understood.",
        401: "No valid token.",
        403: "The token does not cover this.",
        404: "No such deployment or decision.",
        408: "The request arrived too slowly.",
        409: "Contradicts what is on record, or nothing is certified, not even the baseline.",
        413: "Larger than the limits.",
        415: "Not JSON.",
        422: "An argument that cannot be used.",
        429: "Busy with another one.",
        500: "The journal is damaged, or a defect: see the log.",
        503: "The store cannot be reached.",
        504: "No answer in time.",
    }.items()
}
_look = APIRouter(prefix="/v1", route_class=behind(Scope.read), responses=PROBLEMS)
_use = APIRouter(prefix="/v1", route_class=behind(Scope.decide), responses=PROBLEMS)
_rule = APIRouter(prefix="/v1", route_class=behind(Scope.admin), responses=PROBLEMS)
routers = (_rule, _use, _look)

Name = Annotated[str, InPath(description="The deployment's name.", max_length=100, examples=["homepage"])]
Id = Annotated[str, InPath(description="A decision's id.", max_length=150, examples=["homepage-3"])]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=REQUEST_ID,
        description="The request's id: repeating a request with the same key is harmless.",
    ),
]


def _shelf(request: Request) -> Shelf:
    shelf: Shelf = request.app.state.shelf
    return shelf


async def _desk(request: Request, name: str) -> Desk:
    shelf = _shelf(request)
    there = shelf.desk(name)
    return await run_in_threadpool(shelf.open, name) if there is None else there


async def _deployment(request: Request, name: str) -> Deployment:
    return (await _desk(request, name)).deployment


# -- deployments -----------------------------------------------------------------------------------


@_rule.put("/deployments/{name}", status_code=201, tags=["deployments"], summary="Create a deployment")
async def create(request: Request, name: Name, told: m.Creation) -> m.Deployment:
    """Repeating it with the same configuration is harmless; with another one it is an error."""
    shelf = _shelf(request)
    if told.model.dim > shelf.settings.dimension:
        remedy = f"at most {shelf.settings.dimension} features; the limits are configuration"
        raise PayloadTooLarge("model.dim", told.model.dim, remedy)

    def work() -> m.Deployment:
        model, given = LinearModel(**told.model.model_dump()), told.model_dump(exclude={"model"})
        try:
            Deployment.create(shelf.settings.store, name, model, **given).close()
        except NameTaken:
            if not _same(shelf.open(name).deployment.configuration, told):
                raise
        return _deployment_answer(shelf.open(name).deployment)

    return await run_in_threadpool(work)


def _same(there: Configuration, told: m.Creation) -> bool:
    """Whether this creates what is there; a model that leaves its set open takes the policy's."""
    given, model = told.model_dump(exclude={"model", "policy"}), told.model.model_dump()
    if model["confidence"] is None:
        del model["confidence"]
    return (
        there.spec.name == told.policy
        and all(getattr(there, key) == value for key, value in given.items())
        and all(getattr(there.model, key) == value for key, value in model.items())
    )


@_look.get("/deployments", tags=["deployments"], summary="List deployments with their states")
async def deployments(request: Request) -> m.Deployments:
    """A token for one deployment sees that one."""
    states, broken = await run_in_threadpool(readable, _shelf(request), request.state.grant)
    return m.Deployments(deployments=[_state(*state) for state in states], broken=broken)


def readable(shelf: Shelf, grant: Grant) -> tuple[list[tuple[Status, float | None]], dict[str, str]]:
    """States (with outcome windows) of what ``grant`` may see, and why some cannot be told."""
    states, broken = [], {}
    for name in shelf.names():
        if grant.covers(Scope.read, name):
            try:
                dep = shelf.open(name).deployment
                states.append((dep.state(), dep.configuration.outcome_timeout))
            except C4BError as error:
                broken[name] = str(error)
    return states, broken


@_look.get("/deployments/{name}", tags=["deployments"], summary="Where a deployment stands")
async def deployment(request: Request, name: Name) -> m.Deployment:
    """State, configuration and health."""
    return await run_in_threadpool(_deployment_answer, await _deployment(request, name))


def _deployment_answer(dep: Deployment) -> m.Deployment:
    there = dep.configuration
    model = {f.name: getattr(there.model, f.name) for f in fields(there.model) if f.init}
    configuration = m.Configuration(
        model=model,
        policy=there.spec.name,
        alpha=there.alpha,
        reserve=there.reserve,
        baseline_nonnegative=there.baseline_nonnegative,
        absorb=there.absorb,
        outcome_timeout=there.outcome_timeout,
        timeout_reward=there.timeout_reward,
    )
    return m.Deployment(state=_state(dep.state(), there.outcome_timeout), configuration=configuration)


def _state(status: Status, window: float | None) -> m.State:
    shown, reasons = light(status, window)
    return m.State(**status.to_dict(), health=shown, reasons=reasons)


@_rule.post("/deployments/{name}/history", tags=["deployments"], summary="Give history")
async def learn(request: Request, name: Name, told: m.History, key: Key = None) -> m.Deployment:
    """Before the first decision: evidence, never budget."""
    dep = await _deployment(request, name)

    def work() -> m.Deployment:
        dep.learn(told.features, told.rewards, key)
        return _deployment_answer(dep)

    return await run_in_threadpool(work)


# -- decisions and outcomes ------------------------------------------------------------------------


@_use.post("/deployments/{name}/decisions", tags=["decisions"], summary="Decide")
async def decide(request: Request, name: Name, told: m.Round, key: Key = None) -> m.Decided:
    """Choose among the candidates, or the baseline. On disk and charged when the answer is sent."""
    desk = await _desk(request, name)
    made = await desk.decide(told.candidates, told.baseline, key, told.context)
    return _decided(made)


def _decided(made: Decision) -> m.Decided:
    return m.Decided(**{field: getattr(made, field) for field in m.Decided.model_fields})


@_use.post("/deployments/{name}/decisions/batch", tags=["decisions"], summary="Decide many rounds")
async def decide_many(request: Request, name: Name, told: m.Rounds) -> m.Decisions:
    """In one commit; all are decided or none. Each round has its own request id."""
    dep = await _deployment(request, name)
    rounds = [(each.candidates, each.baseline) for each in told.rounds]
    ids = [each.request_id for each in told.rounds]
    contexts = [each.context for each in told.rounds]
    made = await run_in_threadpool(dep.decide_many, rounds, ids, contexts)
    return m.Decisions(decisions=[_decided(each) for each in made])


@_use.put("/deployments/{name}/decisions/{id}/outcome", tags=["outcomes"], summary="Report an outcome")
async def observe(request: Request, name: Name, id: Id, told: m.Outcome) -> m.Done:
    """In any order, after any delay; repeating it is harmless, contradicting it an error."""
    desk = await _desk(request, name)
    if told.lost == (told.reward is not None):
        raise InvalidInput("reward", told.reward, "give either a reward, or lost: true")
    if told.reward is None:
        await run_in_threadpool(desk.deployment.forget, id)
    else:
        await desk.observe(id, told.reward)
    return m.Done()


@_use.post("/deployments/{name}/outcomes", tags=["outcomes"], summary="Report many outcomes")
async def observe_many(request: Request, name: Name, told: m.Outcomes) -> m.Done:
    """In one commit; all are taken or none."""
    dep = await _deployment(request, name)
    pairs = [(each.id, each.reward) for each in told.outcomes]
    await run_in_threadpool(dep.observe_many, pairs)
    return m.Done()


@_use.put(
    "/deployments/{name}/decisions/{id}/executed", tags=["outcomes"], summary="Another was executed"
)
async def executed(request: Request, name: Name, id: Id, told: m.Executed) -> m.Done:
    """Charge what was executed instead; before the outcome is reported."""
    dep = await _deployment(request, name)
    await run_in_threadpool(dep.executed, id, told.features)
    return m.Done()


# -- questions -------------------------------------------------------------------------------------


@_look.get("/deployments/{name}/decisions", tags=["decisions"], summary="Page through decisions")
async def decisions(
    request: Request,
    name: Name,
    after: Annotated[str | None, Query(max_length=150, description="Continue after this id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    order: Literal["newest", "oldest"] = "newest",
) -> m.Page:
    """Newest first unless asked otherwise."""
    dep = await _deployment(request, name)

    def work() -> m.Page:
        if order == "newest":
            found = dep.decisions(before=after, limit=limit, newest=True)
        else:
            found = dep.decisions(after=after, limit=limit)
        more = found[-1].decision.id if len(found) == limit else None
        return m.Page(decisions=[_line(each) for each in found], next=more)

    return await run_in_threadpool(work)


def _line(record: Record) -> m.Line:
    made = record.decision
    return m.Line(
        **{field: getattr(made, field) for field in m.Decided.model_fields},
        at=record.at,
        candidates=len(record.candidates),
        admissible=int((made.details[1] >= 0.0).sum()),
        request_id=record.request_id,
        outcome=record.outcome,
        reward=record.reward,
        executed=None if record.executed is None else record.executed.tolist(),
    )


@_look.get("/deployments/{name}/decisions/{id}", tags=["decisions"], summary="Explain a decision")
async def explain(request: Request, name: Name, id: Id) -> m.Why:
    """Every candidate's certificate, what was admissible, what was chosen, and what became of it."""
    dep = await _deployment(request, name)

    return await run_in_threadpool(lambda: m.Why.model_validate(dep.record(id).to_dict()))


@_look.get("/deployments/{name}/series", tags=["deployments"], summary="The course of a deployment")
async def series(
    request: Request,
    name: Name,
    points: Annotated[int, Query(ge=2, le=5000, description="Decisions to show, about.")] = 500,
) -> m.Series:
    """Bank, fallbacks, pending outcomes, certificates and radius over time, thinned for a picture."""
    dep = await _deployment(request, name)

    def work() -> m.Series:
        course = dep.series(points)
        return m.Series(**{field: [getattr(p, field) for p in course] for field in m.Series.model_fields})

    return await run_in_threadpool(work)


@_look.get("/deployments/{name}/pending", tags=["outcomes"], summary="Outcomes that are missing")
async def pending(
    request: Request, name: Name, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> m.Waiting:
    """Oldest first, with their ages."""
    dep = await _deployment(request, name)

    found = await run_in_threadpool(dep.pending, limit)
    return m.Waiting(pending=[m.Pending.model_validate(each) for each in found])


@_look.post("/deployments/{name}/audit", tags=["deployments"], summary="Run an audit")
async def audit(
    request: Request,
    name: Name,
    sample: Annotated[int, Query(ge=0, le=1000, description="Decisions to redo in 50 digits.")] = 16,
) -> m.Audited:
    """Recompute the whole journal with independent code. May take minutes; one at a time."""
    dep = await _deployment(request, name)
    async with _one_at_a_time(request):
        report = await run_in_threadpool(dep.audit, sample)
    return m.Audited.model_validate(report.to_dict())


@_look.get(
    "/deployments/{name}/export",
    tags=["deployments"],
    summary="All decisions as a Parquet file",
    response_class=FileResponse,
    responses={200: {"content": {"application/vnd.apache.parquet": {}}}},
)
async def export_table(request: Request, name: Name) -> FileResponse:
    """With their outcomes. One at a time."""
    dep = await _deployment(request, name)
    async with _one_at_a_time(request):
        with tempfile.NamedTemporaryFile(suffix=".parquet", delete=False) as draft:
            path = Path(draft.name)
        try:
            await run_in_threadpool(export.write, dep, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    remove = BackgroundTask(path.unlink, missing_ok=True)
    kind = "application/vnd.apache.parquet"
    return FileResponse(path, media_type=kind, filename=f"{name}.parquet", background=remove)


class _one_at_a_time:  # noqa: N801 (reads as a statement)
    """Long work shares a worker with decisions: refuse a second one instead of queueing it."""

    def __init__(self, request: Request) -> None:
        self._state = request.app.state

    async def __aenter__(self) -> None:
        if self._state.busy:
            raise Refused(429, "busy", "another audit or export is running here; try again later")
        self._state.busy = True

    async def __aexit__(self, *_: object) -> None:
        self._state.busy = False
