"""Rewards in a declared range, over HTTP."""

from __future__ import annotations

from support.service_process import Service

MODEL = {"dim": 2, "noise": 0.5, "norm_bound": 1.0, "confidence": "bounded", "rewards": [0, 1]}
ROUND = {"candidates": [[1.0, 0.1]], "baseline": [1.0, 0.0]}


def test_a_reward_out_of_range_is_refused_and_changes_nothing(service: Service, name: str) -> None:
    at = f"/v1/deployments/{name}"
    with service.http() as http:
        made = http.put(at, json={"model": MODEL, "alpha": 0.1})
        assert made.status_code == 201, made.text
        assert made.json()["configuration"]["model"]["rewards"] == [0.0, 1.0]
        history = {"features": [[1.0, 0.0], [1.0, 0.2]], "rewards": [0.0, 7.0]}
        refused = http.post(f"{at}/history", json=history)
        assert refused.status_code == 422
        assert "rewards[1]" in refused.text
        decided = http.post(f"{at}/decisions", json=ROUND).json()
        before = http.get(at).json()["state"]["hash"]
        outcome = f"{at}/decisions/{decided['id']}/outcome"
        refused = http.put(outcome, json={"reward": 1.5})
        assert refused.status_code == 422
        assert "0 to 1" in refused.text
        assert http.get(at).json()["state"]["hash"] == before
        assert http.put(outcome, json={"reward": 1.0}).json()["done"]


def test_the_set_needs_the_range(service: Service, name: str) -> None:
    body = {"model": {**MODEL, "rewards": None}, "alpha": 0.1}
    with service.http() as http:
        answer = http.put(f"/v1/deployments/{name}", json=body)
        assert answer.status_code == 422
        assert "rewards" in answer.text
