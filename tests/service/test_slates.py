"""Slates over HTTP: lists of rows are taken for what they are, and errors name the right element."""

from __future__ import annotations

import numpy as np
import pytest

import c4b
from c4b import errors
from support.service_process import Service

MODEL = c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0)
SLATES = np.array([[[1.0, 0.1], [1.0, 0.2]], [[1.0, -0.3], [1.0, 0.0]]])
BASELINE = np.array([[1.0, 0.0], [1.0, 0.0]])


def test_a_slate_is_decided_executed_observed_and_audited(service: Service, name: str) -> None:
    with c4b.Client(service.url) as client:
        client.create(name, MODEL, policy="refresh", reserve=2.0)
        first, second, third = (client.decide(name, SLATES, BASELINE) for _ in range(3))
        client.executed(name, first.id, SLATES[1])
        client.observe(name, first.id, np.array([0.4, 0.6]))
        client.observe_many(name, {second.id: [0.3, 0.2], third.id: 0.9})
        assert client.deployment(name).state.observations == 5
        assert client.audit(name).clean
        why = client.explain(name, first.id)
        assert (why.items, why.item_rewards) == (SLATES[1].tolist(), [0.4, 0.6])
        assert client.explain(name, third.id).item_rewards is None
        with pytest.raises(errors.InvalidInput, match="2 numbers"):
            client.observe(name, client.decide(name, SLATES, BASELINE).id, [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("body", "argument"),
    [
        ({"candidates": [[[1.0, "x"]]], "baseline": [[1.0, 0.0]]}, "candidates[0][0][1]"),
        ({"candidates": [[[1.0, 0.0]]], "baseline": [[1.0, None]]}, "baseline[0][1]"),
        ({"candidates": [[1.0, "x"]], "baseline": [1.0, 0.0]}, "candidates[0][1]"),
        ({"candidates": [[[1.0, 0.0]]], "baseline": [1.0, 0.0]}, "baseline"),
    ],
)
def test_errors_name_the_element(service: Service, name: str, body: object, argument: str) -> None:
    with c4b.Client(service.url) as client, service.http() as http:
        client.create(name, MODEL)
        answer = http.post(f"/v1/deployments/{name}/decisions", json=body)
    assert answer.status_code == 422
    problem = answer.json()
    assert [problem.get("argument", e["argument"]) for e in problem.get("errors", [problem])] == [
        argument
    ]
