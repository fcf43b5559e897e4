"""The API's schemas and the library list the same fields, with the same defaults and limits."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from c4b import Deployment, LinearModel, Round
from c4b.deployment import Earnings, EarningsPoint, Item, PendingDecision, Point, Report, Status
from c4b.deployment.questions import export
from c4b.errors import InvalidInput
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.explanation import CandidateReport
from c4b.service import schemas
from c4b.service.routing import responses

MODEL = {"dim": 2, "noise": 0.1, "norm_bound": 1.0}
NOT_IN_A_RESPONSE = {"details", "labels", "left_out"}
"""Of all candidates; ``schemas.Candidate`` has them by name. Deployments leave out nothing."""
LEFT_OUT_IF_NONE = {
    "held", "proposed", "propensity", "label", "labels", "baseline_mean", "items", "item_rewards",
}  # fmt: skip


def names(schema: type[BaseModel]) -> set[str]:
    return set(schema.model_fields)


def of_dataclass(value: type) -> set[str]:
    return {field.name for field in fields(value)}


@pytest.mark.parametrize(
    ("schema", "library"),
    [
        (schemas.Decided, set(Decision._fields) - NOT_IN_A_RESPONSE | {"label"}),
        (schemas.Candidate, {*CandidateReport._fields, "features"}),
        (schemas.Round, set(Round._fields) - {"request_id", "argument", "items"}),
        (schemas.NamedRound, set(Round._fields) - {"argument", "items"}),
        (schemas.State, of_dataclass(Status) | {"health", "reasons"}),
        (schemas.Series, of_dataclass(Point)),
        (schemas.Earnings, of_dataclass(Earnings)),
        (schemas.EarningsCourse, EarningsPoint._fields),
        (schemas.Item, of_dataclass(Item) | {"mean"}),
        (schemas.PendingDecision, of_dataclass(PendingDecision) - {"context_json"} | {"context"}),
        (schemas.Audited, of_dataclass(Report) | {"clean"}),
        (schemas.Model, of_dataclass(LinearModel)),
        (schemas.Configuration, names(schemas.Creation) | {"predecessor"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_schema_has_the_librarys_fields(schema: type[BaseModel], library: Iterable[str]) -> None:
    assert names(schema) == set(library)


@pytest.fixture
def dep(tmp_path: Path) -> Iterable[Deployment]:
    model = LinearModel(**MODEL)  # type: ignore[arg-type]
    with Deployment.create(f"sqlite:///{tmp_path}/a.db", "shop", model, reserve=2.0) as made:
        for _ in range(3):
            made.decide([[1.0, 0.1], [1.0, -0.3], [1.0, 9.0]], [1.0, 0.0])
        yield made


def test_an_explanation_has_the_schemas_fields(dep: Deployment) -> None:
    """What the library returns, the schema takes; nothing is lost on the way."""
    explained = dep.decisions()[1].to_dict()
    assert names(schemas.ExplainedDecision) - LEFT_OUT_IF_NONE == set(explained)
    assert {key for each in explained["candidates"] for key in each} == names(schemas.Candidate)
    sent = schemas.ExplainedDecision.model_validate(explained).model_dump(mode="json")
    assert {**sent, "at": explained["at"]} == explained


def test_what_a_round_carries_comes_back(dep: Deployment) -> None:
    body = {"candidates": [[1.0, 0.1]], "baseline": [1.0, 0.0], "labels": ["red"], "context": {"user": 1}}
    decision = dep.decide(schemas.Round.model_validate(body).to_round("r-1"))
    sent = schemas.ExplainedDecision.model_validate(dep.record(decision.id).to_dict()).model_dump()
    assert (sent["labels"], sent["context"], sent["request_id"]) == (["red"], {"user": 1}, "r-1")
    assert "baseline_mean" not in sent


def test_a_row_says_what_the_explanation_says(dep: Deployment) -> None:
    few = dep.decide([[1.0, 0.3], [1.0, 0.1], [-0.1, 0.0]], [1.0, 0.0]).id
    for listed in dep.decisions():
        known = responses.decision_row(listed).admissible
        assert (known is None) == (listed.decision.id == few)  # the others needed all margins
        record = dep.record(listed.decision.id)
        row = responses.decision_row(record)
        explained = schemas.ExplainedDecision.model_validate(record.to_dict())
        shared = names(schemas.RecordedDecision)
        assert row.model_dump(include=shared) == explained.model_dump(include=shared)
        assert row.candidates == len(explained.candidates) == 3
        assert row.admissible == sum(each.admissible for each in explained.candidates)
        assert row.admissible == (3 if listed.decision.id == few else 2)


LEFT_OUT = {
    "policy",
    "alarm",
    "alarm_later",
    "because",
    "admissible",
    "executed",
    "propensity",
    "receipt",
}


def test_the_exported_table_has_the_fields_of_a_row(dep: Deployment) -> None:
    """It leaves out what is the same in every row, and tells by features what was executed."""
    expected = names(schemas.DecisionRow) - LEFT_OUT
    assert set(export.table(dep).columns) == expected | {
        "context",
        "features",
        "baseline",
        "executed_otherwise",
        "items",
    }


def test_the_defaults_are_the_librarys() -> None:
    body = schemas.Creation(model=schemas.Model(**MODEL))  # type: ignore[arg-type]
    parameters = inspect.signature(Deployment.create).parameters
    for name in names(schemas.Creation) - {"model"}:
        assert getattr(body, name) == parameters[name].default, name
    for field in fields(LinearModel):
        if field.default is not MISSING:
            assert getattr(body.model, field.name) == field.default, field.name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.0),
        ("alpha", 1.0),
        ("alpha", 1.5),
        ("reserve", -0.1),
        ("outcome_timeout", 0.0),
        ("dim", 0),
        ("noise", 0.0),
        ("norm_bound", 0.0),
        ("ridge", 0.0),
        ("delta", 0.0),
        ("delta", 1.0),
        ("misspecification", -0.1),
    ],
)
def test_what_the_library_refuses_the_schema_refuses(tmp_path: Path, name: str, value: float) -> None:
    in_model = name in names(schemas.Model)
    model = {**MODEL, name: value} if in_model else MODEL
    options = {} if in_model else {name: value}
    with pytest.raises(ValidationError, match=name):
        schemas.Creation.model_validate({"model": model, **options})
    with pytest.raises(InvalidInput, match=name):
        Deployment.create(
            f"sqlite:///{tmp_path}/a.db",
            "shop",
            LinearModel(**model),  # type: ignore[arg-type]
            **options,  # type: ignore[arg-type]
        )
