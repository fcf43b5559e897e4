"""The REST API under ``/v1``. Each route is one call of ``c4b.Deployment``."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse
from pydantic import AfterValidator, AwareDatetime, BeforeValidator
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from c4b.deployment import Deployment, Status
from c4b.deployment.configuration import Configuration
from c4b.deployment.limits import LABEL, REQUEST_ID
from c4b.deployment.questions import export
from c4b.errors import C4BError, InvalidInput, NameTaken, PayloadTooLarge, StoreUnavailable
from c4b.evidence.model import LinearModel
from c4b.policies import Decision, Round
from c4b.service import schemas, temporary_folders
from c4b.service.access.authorization import requires
from c4b.service.access.token_verifier import Grant
from c4b.service.access.tokens import Scope
from c4b.service.commit_queue import QueuedDeployment
from c4b.service.open_deployments import OpenDeployments
from c4b.service.routing import responses
from c4b.service.routing.problems import MEDIA_TYPE, Refused

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, description in {
        400: "The request is not valid HTTP.",
        401: "No valid token.",
        403: "The token does not cover this.",
        404: "No such deployment or decision.",
        408: "The request arrived too slowly.",
        409: "Contradicts what is on record, or nothing is certified, not even the baseline.",
        413: "Larger than the limits.",
        415: "Not JSON.",
        422: "An argument is not valid.",
        429: "Another audit or export is running, or too many requests of a token or an address.",
        500: "The journal is damaged, or a defect: see the log.",
        503: "The store cannot be reached.",
        504: "No answer in time.",
    }.items()
}
_read_routes = APIRouter(prefix="/v1", route_class=requires(Scope.read), responses=PROBLEMS)
_decide_routes = APIRouter(prefix="/v1", route_class=requires(Scope.decide), responses=PROBLEMS)
_admin_routes = APIRouter(prefix="/v1", route_class=requires(Scope.admin), responses=PROBLEMS)
routers = (_admin_routes, _decide_routes, _read_routes)

Name = Annotated[str, InPath(description="The deployment's name.", max_length=100, examples=["homepage"])]
Id = Annotated[
    str, InPath(description="A decision's id.", max_length=150, examples=["homepage-3-5be3c1a20f47"])
]


def utf_8(key: str | None) -> str | None:
    """HTTP gives a header's bytes as Latin-1. Where they are UTF-8, that is what the client meant.

    Blanks around a header's value do not belong to it (RFC 9110, section 5.5): a proxy may remove them.
    """
    with suppress(UnicodeError):
        key = None if key is None else key.strip(" \t").encode("latin-1").decode()
    if key is not None and len(key) > REQUEST_ID:
        raise ValueError(f"must have at most {REQUEST_ID} characters")
    return key


IdempotencyKey = Annotated[
    str | None,
    AfterValidator(utf_8),
    Header(
        alias="Idempotency-Key",
        max_length=4 * REQUEST_ID,
        description="The request's id: repeating a request with the same key is harmless.",
    ),
]


def _iso_8601(value: object) -> object:
    """Refuse numbers, which would be taken for seconds since 1970."""
    if isinstance(value, str) and not _DATE_AND_TIME.match(value):
        raise ValueError("must be a date and a time as in 2026-01-31T08:00:00Z")
    return value


_DATE_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]")
Moment = Annotated[
    AwareDatetime | None,
    BeforeValidator(_iso_8601),
    Query(description="With a time zone: 2026-01-31T08:00:00Z."),
]


def _open_deployments(request: Request) -> OpenDeployments:
    deployments: OpenDeployments = request.app.state.deployments
    return deployments


async def queued_deployment(request: Request, name: str) -> QueuedDeployment:
    deployments = _open_deployments(request)
    queued = deployments.get(name)
    return await run_in_threadpool(deployments.open, name) if queued is None else queued


async def _deployment(request: Request, name: str) -> Deployment:
    return (await queued_deployment(request, name)).deployment


# -- deployments -----------------------------------------------------------------------------------


@_admin_routes.put(
    "/deployments/{name}", status_code=201, tags=["deployments"], summary="Create a deployment"
)
async def create(request: Request, name: Name, body: schemas.Creation) -> schemas.Deployment:
    """Repeating it with the same configuration is harmless; with another one it is an error."""
    deployments = _open_deployments(request)
    settings = deployments.settings
    if body.model.dim > settings.dimension:
        remedy = f"at most {settings.dimension} features; the limits are configuration"
        raise PayloadTooLarge("model.dim", body.model.dim, remedy)

    def work() -> schemas.Deployment:
        model, options = LinearModel(**body.model.model_dump()), body.model_dump(exclude={"model"})
        try:
            Deployment.create(deployments.backend, name, model, **options).close()
        except NameTaken:
            if not _same_configuration(deployments.open(name).deployment.configuration, body):
                raise
        return responses.deployment(deployments.open(name).deployment)

    return await run_in_threadpool(work)


def _same_configuration(existing: Configuration, body: schemas.Creation) -> bool:
    """Whether ``body`` asks for ``existing``. A model without a set has the set of its policy."""
    options, model = body.model_dump(exclude={"model", "policy"}), body.model.model_dump()
    if model["confidence"] is None:
        del model["confidence"]
    return (
        existing.spec.name == body.policy
        and all(getattr(existing, key) == value for key, value in options.items())
        and all(getattr(existing.model, key) == value for key, value in model.items())
    )


@_read_routes.get("/deployments", tags=["deployments"], summary="List deployments with their states")
async def deployments(request: Request) -> schemas.Deployments:
    """With a token for one deployment, the list contains that one only."""
    states, broken = await run_in_threadpool(
        readable_states, _open_deployments(request), request.state.grant
    )
    return schemas.Deployments(deployments=[responses.state(*each) for each in states], broken=broken)


def readable_states(
    deployments: OpenDeployments, grant: Grant
) -> tuple[list[tuple[Status, float | None]], dict[str, str]]:
    """Return the states (with outcome timeouts) that ``grant`` may read, and why others are broken."""
    states, broken = [], {}
    for name in deployments.names():
        if grant.covers(Scope.read, name):
            try:
                dep = deployments.open(name).deployment
                states.append((dep.state(), dep.configuration.outcome_timeout))
            except C4BError as error:
                broken[name] = str(error)
    return states, broken


@_read_routes.get("/deployments/{name}", tags=["deployments"], summary="Show a deployment")
async def deployment(request: Request, name: Name) -> schemas.Deployment:
    """State, configuration and health."""
    shown = await run_in_threadpool(responses.deployment, await _deployment(request, name))
    return shown.model_copy(update={"scope": request.state.grant.scope.name})


@_admin_routes.post("/deployments/{name}/history", tags=["deployments"], summary="Give history")
async def learn(
    request: Request, name: Name, body: schemas.History, key: IdempotencyKey = None
) -> schemas.Deployment:
    """Before the first decision. History is evidence; it adds nothing to the bank."""
    queued = await queued_deployment(request, name)
    await queued.write(queued.deployment.learn, body.features, body.rewards, key)
    return await run_in_threadpool(responses.deployment, queued.deployment)


# -- decisions and outcomes ------------------------------------------------------------------------


@_decide_routes.post("/deployments/{name}/decisions", tags=["decisions"], summary="Decide")
async def decide(
    request: Request, name: Name, body: schemas.Round, key: IdempotencyKey = None
) -> schemas.Decided:
    """Choose among the candidates, or the baseline. On disk and charged when the answer is sent.

    The same Idempotency-Key gets the first decision again, also with another context or other labels; the
    first ones are kept. With other candidates, another baseline or another mean it is an error (409).
    """
    round_, large = body.to_round(key), request.state.large_body
    return responses.decided(await decided(_open_deployments(request), name, round_, large))


async def decided(deployments: OpenDeployments, name: str, round_: Round, large: bool) -> Decision:
    """The decision of a round, which may be ``large``: then a thread checks it."""
    queued = deployments.get(name)
    if queued is None:
        queued = await run_in_threadpool(deployments.open, name)
    check = queued.deployment.request
    return await queued.decide(await run_in_threadpool(check, round_) if large else check(round_))


@_decide_routes.post(
    "/deployments/{name}/decisions/batch", tags=["decisions"], summary="Decide many rounds"
)
async def decide_many(request: Request, name: Name, body: schemas.Rounds) -> schemas.Decisions:
    """In one commit; all are decided or none. Each round has its own request id.

    `outcomes` of earlier decisions are recorded first, and the decisions learn from them. So a caller who
    reports with its next request needs one commit for both.
    """
    queued = await queued_deployment(request, name)
    rounds = [each.to_round(each.request_id) for each in body.rounds]
    pairs = [(each.id, each.reward) for each in body.outcomes]
    decisions = await queued.write(queued.deployment.decide_many, rounds, outcomes=pairs)
    return schemas.Decisions(decisions=[responses.decided(each) for each in decisions])


@_decide_routes.put(
    "/deployments/{name}/decisions/{id}/outcome", tags=["outcomes"], summary="Report an outcome"
)
async def observe(request: Request, name: Name, id: Id, body: schemas.Outcome) -> schemas.Done:
    """In any order, after any delay; repeating it is harmless, contradicting it is an error.

    An outcome is declared `lost` before the outcome of a later decision is reported, or with
    `independent: true`.
    """
    queued = await queued_deployment(request, name)
    if body.lost == (body.reward is not None):
        raise InvalidInput("reward", body.reward, "give either a reward, or lost: true")
    if body.independent and not body.lost:
        raise InvalidInput("independent", True, "is an assertion about lost outcomes; leave it out")
    if body.reward is None:
        await queued.write(queued.deployment.forget, id, independent=body.independent)
    else:
        await queued.observe(id, body.reward)
    return schemas.Done()


@_decide_routes.post("/deployments/{name}/outcomes", tags=["outcomes"], summary="Report many outcomes")
async def observe_many(request: Request, name: Name, body: schemas.Outcomes) -> schemas.Done:
    """In one commit; all are recorded or none."""
    queued = await queued_deployment(request, name)
    pairs = [(each.id, each.reward) for each in body.outcomes]
    await queued.write(queued.deployment.observe_many, pairs)
    return schemas.Done()


@_decide_routes.put(
    "/deployments/{name}/decisions/{id}/executed",
    tags=["outcomes"],
    summary="Report another executed action",
)
async def executed(request: Request, name: Name, id: Id, body: schemas.Executed) -> schemas.Done:
    """Charge the action that was executed instead; before the outcome is reported.

    Also before the outcome of a later decision is reported, or with `independent: true`.
    """
    queued = await queued_deployment(request, name)
    await queued.write(queued.deployment.executed, id, body.features, independent=body.independent)
    return schemas.Done()


# -- queries ---------------------------------------------------------------------------------------


@_read_routes.get("/deployments/{name}/decisions", tags=["decisions"], summary="Page through decisions")
async def decisions(
    request: Request,
    name: Name,
    after: Annotated[str | None, Query(max_length=150, description="Continue after this id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    order: Literal["newest", "oldest"] = "newest",
    request_id: Annotated[str | None, Query(max_length=REQUEST_ID)] = None,
    label: Annotated[str | None, Query(max_length=LABEL, description="Of what was played.")] = None,
    outcome: Literal["pending", "observed", "timeout", "forgotten"] | None = None,
    played: Literal["baseline", "candidate"] | None = None,
    since: Moment = None,
    until: Moment = None,
) -> schemas.Page:
    """Newest first by default. With a request id, a label, an outcome, what was played or a time only the
    decisions that have all of it, newest first; one request reads at most 5000 decisions for it."""
    dep = await _deployment(request, name)
    wanted = (request_id, label, outcome, played, since, until)
    searched = wanted != (None,) * len(wanted)
    if searched and order == "oldest":
        raise InvalidInput("order", order, "a search answers newest first")

    def work() -> schemas.Page:
        if searched:
            found = dep.find(*wanted, before=after, limit=limit)
            lines = [responses.decision_row(each) for each in found.records]
            return schemas.Page(decisions=lines, next=found.next, read=found.read)
        if order == "newest":
            records = dep.decisions(before=after, limit=limit, newest=True)
        else:
            records = dep.decisions(after=after, limit=limit)
        next_id = records[-1].decision.id if len(records) == limit else None
        rows = [responses.decision_row(each) for each in records]
        return schemas.Page(decisions=rows, next=next_id, read=None)

    return await run_in_threadpool(work)


@_read_routes.get("/deployments/{name}/decisions/{id}", tags=["decisions"], summary="Explain a decision")
async def explain(request: Request, name: Name, id: Id) -> schemas.ExplainedDecision:
    """The bounds of every candidate, which were admissible, which was chosen, and the outcome."""
    dep = await _deployment(request, name)

    def work() -> schemas.ExplainedDecision:
        return schemas.ExplainedDecision.model_validate(dep.record(id).to_dict())

    return await run_in_threadpool(work)


@_read_routes.get(
    "/deployments/{name}/series", tags=["deployments"], summary="Show a deployment over time"
)
async def series(
    request: Request,
    name: Name,
    points: Annotated[int, Query(ge=2, le=5000, description="Approximate number of points.")] = 500,
) -> schemas.Series:
    """Bank, fallbacks, pending outcomes, certificates and radius over time, downsampled for a plot."""
    dep = await _deployment(request, name)

    def work() -> schemas.Series:
        sampled = dep.series(points)
        return schemas.Series(
            **{field: [getattr(p, field) for p in sampled] for field in schemas.Series.model_fields}
        )

    return await run_in_threadpool(work)


@_read_routes.get("/deployments/{name}/earnings", tags=["deployments"], summary="Is it earning?")
async def earnings(
    request: Request,
    name: Name,
    seconds: Annotated[float | None, Query(gt=0, description="Only the last N seconds.")] = None,
    last: Annotated[int | None, Query(ge=1, description="Only about this many decisions.")] = None,
) -> schemas.Earnings:
    """What was earned, and the uplift over the incumbent: the estimate, and what is certified."""
    dep = await _deployment(request, name)
    return schemas.Earnings.model_validate(await run_in_threadpool(dep.earnings, seconds, last))


@_read_routes.get(
    "/deployments/{name}/earnings/course", tags=["deployments"], summary="Show the uplift over time"
)
async def earnings_course(request: Request, name: Name) -> schemas.EarningsCourse:
    """The uplift of all decisions up to some of them, by what is known now."""
    dep = await _deployment(request, name)
    points = await run_in_threadpool(dep.earnings_course)
    columns = schemas.EarningsCourse.model_fields
    return schemas.EarningsCourse(**{key: [getattr(p, key) for p in points] for key in columns})


@_read_routes.get("/deployments/{name}/items", tags=["deployments"], summary="List labels")
async def items(request: Request, name: Name) -> schemas.Items:
    """How often each label was offered, admissible and played, and its mean reward with an interval."""
    dep = await _deployment(request, name)
    listed = await run_in_threadpool(dep.items)
    return schemas.Items(items=[schemas.Item.model_validate(each) for each in listed])


@_read_routes.get("/deployments/{name}/pending", tags=["outcomes"], summary="List pending outcomes")
async def pending(
    request: Request, name: Name, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> schemas.PendingDecisions:
    """Oldest first, with their ages."""
    dep = await _deployment(request, name)
    oldest = await run_in_threadpool(dep.pending, limit)
    return schemas.PendingDecisions(
        pending=[schemas.PendingDecision.model_validate(each) for each in oldest]
    )


@_read_routes.post("/deployments/{name}/audit", tags=["deployments"], summary="Run an audit")
async def audit(
    request: Request,
    name: Name,
    sample: Annotated[int, Query(ge=0, le=1000, description="Decisions to recompute in 50 digits.")] = 16,
) -> schemas.Audited:
    """Recompute the whole journal with independent code. May take minutes; one at a time.

    It runs in a process of low priority: decisions go first.
    """
    dep = await _deployment(request, name)
    async with _one_at_a_time(request):
        report = await run_in_threadpool(request.app.state.audit_process.run, dep, sample)
    return schemas.Audited.model_validate(report.to_dict())


@_read_routes.get(
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
        try:
            folder = temporary_folders.new_folder("export")
            path = folder / "decisions.parquet"
            try:
                await run_in_threadpool(export.write, dep, path)
            except BaseException:
                temporary_folders.remove(folder)
                raise
        except OSError as error:  # no room for it, or no folder
            detail = f"the table cannot be written on the service's machine ({error.strerror})"
            raise StoreUnavailable(detail) from error
    remove = BackgroundTask(temporary_folders.remove, folder)
    kind = "application/vnd.apache.parquet"
    return FileResponse(path, media_type=kind, filename=f"{name}.parquet", background=remove)


class _one_at_a_time:  # noqa: N801 (used like a function)
    """Refuse a second audit or export: a worker that runs several would answer decisions slowly."""

    def __init__(self, request: Request) -> None:
        self._state = request.app.state

    async def __aenter__(self) -> None:
        if self._state.busy:
            raise Refused(429, "busy", "another audit or export is running here; try again later")
        self._state.busy = True

    async def __aexit__(self, *_: object) -> None:
        self._state.busy = False
