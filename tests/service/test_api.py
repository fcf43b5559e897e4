"""The API over real HTTP against a real server."""

from __future__ import annotations

import http.client
import io
import json
import re

import polars as pl
import pytest

from c4b.deployment import Deployment
from support.service_process import Service

MODEL = {"dim": 2, "noise": 0.1, "norm_bound": 1.0}
BODY = {"model": MODEL, "policy": "refresh", "alpha": 0.1, "reserve": 2.0}
ROUND = {"candidates": [[1.0, 0.1], [1.0, -0.3]], "baseline": [1.0, 0.0], "context": {"user": "u-1"}}


def test_blanks_around_a_key_do_not_belong_to_it(service: Service, name: str) -> None:
    """A proxy may remove them; the request must not be decided twice then."""
    with service.http() as client:
        client.put(f"/v1/deployments/{name}", json=BODY)
    answers = set()
    for key in ("k-1", " k-1 ", "\tk-1"):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        connection.request("POST", f"/v1/deployments/{name}/decisions", json.dumps(ROUND), headers)
        answers.add(connection.getresponse().read())
        connection.close()
    assert len(answers) == 1
    with service.http() as client:
        assert client.get(f"/v1/deployments/{name}").json()["state"]["rounds"] == 1


def test_the_whole_life_of_a_deployment(service: Service, name: str) -> None:
    with service.http() as http:
        at = f"/v1/deployments/{name}"
        made = http.put(at, json=BODY)
        assert made.status_code == 201
        assert made.json()["state"]["health"] == "idle"
        assert made.json()["configuration"]["model"]["dim"] == 2
        history = {"features": [[1.0, 0.0], [1.0, 0.2]], "rewards": [0.5, 0.55]}
        learned = http.post(f"{at}/history", json=history, headers={"Idempotency-Key": "h"})
        again = http.post(f"{at}/history", json=history, headers={"Idempotency-Key": "h"})
        assert learned.json()["state"]["observations"] == again.json()["state"]["observations"] == 2

        decided = http.post(f"{at}/decisions", json=ROUND, headers={"Idempotency-Key": "r-1"}).json()
        repeated = http.post(f"{at}/decisions", json=ROUND, headers={"Idempotency-Key": "r-1"}).json()
        assert decided == repeated
        assert decided["action"] in (0, 1)
        assert decided["bank"] == pytest.approx(decided["bank_before"] + decided["certificate"])
        many = {"rounds": [{**ROUND, "request_id": f"b-{n}"} for n in range(3)]}
        batch = http.post(f"{at}/decisions/batch", json=many).json()["decisions"]
        assert [d["receipt"]["seq"] for d in batch] == [3, 4, 5]

        assert http.put(f"{at}/decisions/{decided['id']}/outcome", json={"reward": 0.6}).json()["done"]
        assert http.put(f"{at}/decisions/{decided['id']}/outcome", json={"reward": 0.6}).json()["done"]
        other = {"features": [1.0, 0.05]}
        assert http.put(f"{at}/decisions/{batch[0]['id']}/executed", json=other).json()["done"]
        outcomes = {"outcomes": [{"id": batch[0]["id"], "reward": 0.5}]}
        assert http.post(f"{at}/outcomes", json=outcomes).json()["done"]
        assert http.put(f"{at}/decisions/{batch[1]['id']}/outcome", json={"lost": True}).json()["done"]

        state = http.get(at).json()["state"]
        assert (state["rounds"], state["pending"], state["health"]) == (4, 1, "ok")
        waiting = http.get(f"{at}/pending").json()["pending"]
        assert [each["id"] for each in waiting] == [batch[2]["id"]]
        assert waiting[0]["age"] >= 0.0

        why = http.get(f"{at}/decisions/{decided['id']}").json()
        assert why["context"] == {"user": "u-1"}
        assert (why["outcome"], why["reward"], why["request_id"]) == ("observed", 0.6, "r-1")
        for case in why["candidates"]:
            assert case["separate"] <= case["joint"] <= case["estimate"] <= case["upper"]
            assert case["penalty"] == pytest.approx(case["joint"] - case["separate"])
        assert [case["chosen"] for case in why["candidates"]].index(True) == decided["action"]
        executed = http.get(f"{at}/decisions/{batch[0]['id']}").json()
        assert executed["executed"] == [1.0, 0.05]

        newest = http.get(f"{at}/decisions", params={"limit": 3}).json()
        numbers = [line["id"].removeprefix(f"{name}-").split("-")[0] for line in newest["decisions"]]
        assert numbers == ["5", "4", "3"]
        rest = http.get(f"{at}/decisions", params={"after": newest["next"], "limit": 3}).json()
        assert [line["id"] for line in rest["decisions"]] == [decided["id"]]
        assert rest["next"] is None
        oldest = http.get(f"{at}/decisions", params={"order": "oldest"}).json()["decisions"]
        assert [line["id"] for line in oldest] == [decided["id"], *(d["id"] for d in batch)]
        assert [line["outcome"] for line in oldest] == ["observed", "observed", "forgotten", "pending"]

        series = http.get(f"{at}/series").json()
        assert series["round"] == [1, 2, 3, 4]
        assert series["bank"][0] == pytest.approx(decided["bank"])

        verdict = http.post(f"{at}/audit").json()
        assert verdict["clean"] is True
        assert verdict["decisions"] == 4
        table = pl.read_parquet(io.BytesIO(http.get(f"{at}/export").content))
        assert table.height == 4
        assert name in [each["name"] for each in http.get("/v1/deployments").json()["deployments"]]


def test_a_loss_after_a_later_outcome_needs_an_assertion(service: Service, name: str) -> None:
    with service.http() as http:
        at = f"/v1/deployments/{name}"
        http.put(at, json={**BODY, "reserve": 20.0})
        rounds = {"rounds": [{**ROUND, "request_id": f"b-{n}"} for n in range(3)]}
        ids = [made["id"] for made in http.post(f"{at}/decisions/batch", json=rounds).json()["decisions"]]
        assert http.put(f"{at}/decisions/{ids[2]}/outcome", json={"reward": 0.6}).status_code == 200
        late = {
            f"{at}/decisions/{ids[0]}/outcome": {"lost": True},
            f"{at}/decisions/{ids[1]}/executed": {"features": [1.0, 0.05]},
        }
        before = http.get(at).json()["state"]["seq"]
        for path, body in late.items():
            for given in (body, {**body, "independent": False}):
                refused = http.put(path, json=given)
                assert refused.status_code == 409
                assert refused.json()["type"] == "urn:c4b:problem:later-outcome-known"
                assert refused.json()["argument"] == "decision_id"
                assert "independent" in refused.json()["remedy"]
            assert http.put(path, json={**body, "independent": "yes"}).status_code == 422
        nonsense = {"reward": 0.5, "independent": True}
        assert http.put(f"{at}/decisions/{ids[0]}/outcome", json=nonsense).status_code == 422
        assert http.get(at).json()["state"]["seq"] == before
        for path, body in late.items():
            for given in ({**body, "independent": True}, body):
                assert http.put(path, json=given).json()["done"]
        assert http.get(at).json()["state"]["seq"] == before + 2
        assert http.post(f"{at}/audit").json()["clean"]


def test_it_is_the_library(service: Service, name: str) -> None:
    """What was decided over HTTP is in the store, and the library decides the same."""
    with service.http() as http:
        http.put(f"/v1/deployments/{name}", json=BODY)
        answers = [http.post(f"/v1/deployments/{name}/decisions", json=ROUND).json() for _ in range(5)]
    with Deployment.open(service.store, name) as dep:
        records = dep.decisions()
        assert [r.decision.id for r in records] == [d["id"] for d in answers]
        assert [r.decision.bank for r in records] == [d["bank"] for d in answers]


def test_the_recommended_policy_is_the_default(service: Service, name: str) -> None:
    with service.http() as http:
        made = http.put(f"/v1/deployments/{name}", json={"model": MODEL}).json()
        assert made["state"]["policy"] == made["configuration"]["policy"] == "reserve-c4b+"
        assert made["configuration"]["model"]["confidence"] == "several-ridges"
        same = {"model": MODEL, "policy": "reserve-c4b+"}
        assert http.put(f"/v1/deployments/{name}", json=same).status_code == 201


def test_creating_twice(service: Service, name: str) -> None:
    with service.http() as http:
        at = f"/v1/deployments/{name}"
        assert http.put(at, json=BODY).status_code == 201
        assert http.put(at, json=BODY).status_code == 201
        other = http.put(at, json={**BODY, "alpha": 0.2})
        assert other.status_code == 409
        assert other.json()["type"] == "urn:c4b:problem:name-taken"
        bigger = {**BODY, "model": {**MODEL, "dim": 3}}
        assert http.put(at, json=bigger).status_code == 409


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "says"),
    [
        ("decisions", {**ROUND, "baseline": [1.0]}, 422, "invalid-input", "baseline = [1.0]"),
        ("decisions", {**ROUND, "extra": 1}, 422, "invalid-input", "extra"),
        ("decisions", {"baseline": [1.0, 0.0]}, 422, "invalid-input", "candidates"),
        ("decisions", {**ROUND, "candidates": [[1.0, "0.1"]]}, 422, "invalid-input", "candidates[0][1]"),
        ("decisions", {**ROUND, "candidates": [[1.0, 1e999]]}, 422, "invalid-input", "must be JSON"),
        ("decisions", {**ROUND, "candidates": [[1.0, 0.1]] * 1001}, 413, "payload-too-large", "1000"),
        ("decisions", {**ROUND, "context": "x" * 20000}, 413, "payload-too-large", "context"),
        ("history", {"features": [[1.0, 0.0]], "rewards": []}, 422, "invalid-input", "rewards"),
        ("history", {"features": [[1.0, 0.0]], "rewards": [0.5]}, 409, "history-closed", "decisions"),
        ("outcomes", {"outcomes": [{"id": "no-1", "reward": 1.0}]}, 404, "unknown-decision", "no-1"),
    ],
)
def test_refusals_are_problems_and_change_nothing(
    service: Service, name: str, path: str, body: dict[str, object], status: int, kind: str, says: str
) -> None:
    with service.http() as http:
        at = f"/v1/deployments/{name}"
        http.put(at, json=BODY)
        http.post(f"{at}/decisions", json=ROUND)
        before = http.get(at).json()["state"]["hash"]
        sent = {"Content-Type": "application/json"}
        answer = http.post(f"{at}/{path}", content=json.dumps(body), headers=sent)  # Infinity too
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["type"] == f"urn:c4b:problem:{kind}"
        assert says in problem["detail"]
        assert http.get(at).json()["state"]["hash"] == before


def test_unknown_places(service: Service, name: str) -> None:
    with service.http() as http:
        assert http.get(f"/v1/deployments/{name}").json()["type"] == "urn:c4b:problem:unknown-deployment"
        assert http.get("/nowhere").status_code == 404
        assert http.get("/nowhere").headers["content-type"] == "application/problem+json"
        assert http.delete("/v1/deployments").status_code == 405
        http.put(f"/v1/deployments/{name}", json=BODY)
        lost = http.get(f"/v1/deployments/{name}/decisions/{name}-99")
        assert (lost.status_code, lost.json()["argument"]) == (404, "decision_id")
        assert http.get(f"/v1/deployments/{name}/decisions?after=zzz").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "parameter", "says"),
    [
        ("GET", "decisions", "limt=5", "which takes after, limit"),
        ("GET", "earnings", "secnds=3600", "which takes seconds, last"),
        ("POST", "decisions", "request_id=r-1", "which takes none"),
        ("GET", "", "since=yesterday", "which takes none"),
    ],
)
def test_parameters_that_do_not_exist(
    service: Service, name: str, method: str, path: str, parameter: str, says: str
) -> None:
    with service.http() as http:
        at = f"/v1/deployments/{name}"
        http.put(at, json=BODY)
        before = http.get(at).json()["state"]["hash"]
        answer = http.request(
            method, f"{at}/{path}".rstrip("/"), params=parameter, json=ROUND if method == "POST" else None
        )
        assert (answer.status_code, answer.json()["argument"]) == (422, parameter.partition("=")[0])
        assert says in answer.json()["detail"]
        assert http.get(at).json()["state"]["hash"] == before
        assert http.get("/healthz", params="from=balancer").status_code == 200


def test_the_description_is_complete_and_offline(service: Service) -> None:
    with service.http() as http:
        document = http.get("/openapi.json").json()
        for path, operations in document["paths"].items():
            for operation in operations.values():
                assert operation["summary"], path
                assert operation["description"], path
                assert ("security" in operation) == (path not in ("/healthz", "/readyz")), path
        examples = [
            field
            for part in ("Round", "History", "Model", "NamedOutcome")
            for field in document["components"]["schemas"][part]["properties"].values()
            if "examples" in field
        ]
        assert len(examples) >= 8
        page = http.get("/docs").text
        for address in re.findall(r"""(?:src=|href=|url: )["']([^"']*)""", page):
            assert not address.startswith(("http", "/")), address  # a proxy may serve it below a path
            assert http.get(f"/{address}").status_code == 200, address
        assert document["servers"] == [{"url": "."}]
        assert http.get("/swagger/swagger-ui-bundle.js").status_code == 200
