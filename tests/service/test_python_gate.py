"""A gate in plain Python from somebody's own package: served by every worker, listed, audited."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

import c4b
from support.service_process import C4B, Service, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_gate.py"
MODEL = {"dim": 2, "noise": 0.1, "norm_bound": 1.0}
ROUND = {"candidates": [[1.0, 0.1], [1.0, -0.3]], "baseline": [1.0, 0.0], "labels": ["red", "blue"]}
WITH_MEAN = '''
"""The example's gate as a policy that needs the baseline's mean and tells its propensity."""

import c4b
from my_gate import WorstCaseGate


class KnownMeanGate(WorstCaseGate):
    def decide(self, round_, decision_id):
        assert round_.baseline_mean is not None
        print("a gate that prints")
        return super().decide(round_, decision_id)._replace(policy="known-mean", propensity=1.0)


known_mean = c4b.policies.GateFactory(
    "known-mean", KnownMeanGate, "needs the mean", needs=frozenset({"baseline_mean"})
)
'''
ENTRY_POINTS = """
[c4b.gates]
worst-case = my_gate:WorstCaseGate
known-mean = with_mean:known_mean
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which a distribution with two gates is installed."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(EXAMPLE, folder / "my_gate.py")
    (folder / "with_mean.py").write_text(WITH_MEAN)
    described = folder / "my_gates-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: my-gates\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(ENTRY_POINTS)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path}


def policies(environment: dict[str, str]) -> str:
    command = [*C4B, "policies"]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_it_is_listed_where_it_is_installed(installed: dict[str, str]) -> None:
    shown = policies(installed)
    assert "worst-case" in shown
    assert "pays for the worst theta" in shown
    assert "known-mean" in shown
    assert "worst-case" not in policies({})


def deciding_workers(service: Service) -> set[int]:
    lines = [json.loads(line) for line in service.logged() if '"/v1/deployments/shop/decisions"' in line]
    return {line["process"] for line in lines if line["status"] == 200}


def test_every_worker_serves_it_and_it_is_audited(installed: dict[str, str], tmp_path: Path) -> None:
    store, at = f"sqlite:///{tmp_path}/gates.db", "/v1/deployments/shop"
    body = {"model": MODEL, "policy": "worst-case", "reserve": 5.0}
    with serving(store, tmp_path / "log", "--workers", "2", environment=installed) as service:
        with service.http() as http:
            made = http.put(at, json=body)
            assert (made.status_code, made.json()["state"]["policy"]) == (201, "worst-case"), made.text
            assert http.put(at, json=body).status_code == 201  # whichever worker answers
        decided = []
        while len(deciding_workers(service)) < 2:
            assert len(decided) < 1000, "only one worker ever decided"
            answer = httpx.post(  # a connection of its own
                f"{service.url}{at}/decisions", json=ROUND, timeout=180.0
            )
            assert answer.status_code == 200, answer.text
            decided.append(answer.json())
        first = decided[0]
        assert (first["policy"], first["bank_before"], first["radius"]) == ("worst-case", 5.0, None)
        assert "propensity" not in first
        with service.http() as http:
            outcome = http.put(f"{at}/decisions/{first['id']}/outcome", json={"reward": 0.5})
            assert outcome.status_code == 200
            why = http.get(f"{at}/decisions/{first['id']}").json()
            assert (why["labels"], why["outcome"]) == (["red", "blue"], "observed")
            assert len(http.get(f"{at}/series").json()["bank"]) == min(len(decided), 500)
            assert len(http.get(f"{at}/pending?limit=1000").json()["pending"]) == len(decided) - 1
            assert http.get(f"{at}/export").content[:4] == b"PAR1"
            assert 'c4b_decisions_total{deployment="shop"}' in http.get("/metrics").text
            report = http.post(f"{at}/audit").json()
            assert (report["clean"], report["level"]) == (True, "replayed"), report
            assert report["decisions"] == len(decided)
            needs(http)
    without(store, tmp_path)


def needs(http: httpx.Client) -> None:
    """A gate gets the inputs that it needs, and its propensity is answered."""
    at = "/v1/deployments/mean"
    body = {"model": MODEL, "policy": "known-mean", "reserve": 5.0}
    assert http.put(at, json=body).status_code == 201
    missing = http.post(f"{at}/decisions", json=ROUND)
    assert (missing.status_code, missing.json()["argument"]) == (422, "baseline_mean")
    for path, sent in (
        ("decisions", {**ROUND, "baseline_mean": 0.5}),
        ("decisions/batch", {"rounds": [{**ROUND, "baseline_mean": 0.5}]}),
    ):
        answer = http.post(f"{at}/{path}", json=sent)
        assert answer.status_code == 200, answer.text
        decision = answer.json().get("decisions", [answer.json()])[0]
        assert decision["propensity"] == 1.0
        why = http.get(f"{at}/decisions/{decision['id']}").json()
        assert (why["baseline_mean"], why["propensity"]) == (0.5, 1.0)
    with c4b.Client(str(http.base_url)) as client:
        round_ = c4b.Round(ROUND["candidates"], ROUND["baseline"], baseline_mean=0.5, request_id="r")
        made = client.decide("mean", round_)
        assert made.propensity == 1.0
        assert client.decide_many("mean", [round_]) == [made]
        assert client.audit("mean").level == "replayed"


def without(store: str, tmp_path: Path) -> None:
    """Without the package the deployment cannot be read, others can, and the reason says what to do."""
    with serving(store, tmp_path / "without.log") as service, service.http() as http:
        refused = http.put("/v1/deployments/new", json={"model": MODEL, "policy": "worst-case"})
        assert (refused.status_code, refused.json()["argument"]) == (422, "policy")
        assert http.put("/v1/deployments/own", json={"model": MODEL}).status_code == 201
        listed = http.get("/v1/deployments").json()
        assert [each["name"] for each in listed["deployments"]] == ["own"]
        assert set(listed["broken"]) == {"mean", "shop"}
        assert "install the package" in listed["broken"]["shop"]
