"""A store that version 0.1.0 wrote: opened, audited and continued bit for bit."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from c4b import Deployment
from c4b.policies import Composition
from c4b.policies.gate_run import GateRun
from support import old_gates_store
from support.old_store import DEPLOYMENTS, continued
from support.shop_world import in_agreement

DATA = Path(__file__).parent / "data"


@pytest.fixture
def old_url(tmp_path: Path) -> str:
    shutil.copy(DATA / "written_by_0_1.db", tmp_path / "store.db")
    return f"sqlite:///{tmp_path}/store.db"


def test_it_is_clean(old_url: str) -> None:
    assert Deployment.names(old_url) == sorted(DEPLOYMENTS)
    for name in DEPLOYMENTS:
        with Deployment.open(old_url, name) as dep:
            report = dep.audit(sample=4)
            assert report.clean, report
            assert report.snapshots == 2
            assert report.precise >= 4


def test_it_goes_on_bit_for_bit(old_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 0.1.0 did not ask for the assertion of independence, and so did not record it."""
    monkeypatch.setattr(GateRun, "check_order", lambda *_: None)
    differences = 0
    for name in DEPLOYMENTS:
        with Deployment.open(old_url, name) as dep:
            differences += dep.audit(sample=0).replay_differences
    ours, theirs = continued(old_url), json.loads((DATA / "written_by_0_1.json").read_text())
    for report in (ours, theirs):
        for each in report.values():
            if differences or sys.version_info[:2] != (3, 11):  # other bytecode: other last bits
                del each["hash"]
            if differences:  # bounds allow for rounding since, or this machine rounds otherwise
                rows = each["numbers"]
                each["numbers"] = [[f"{float.fromhex(value):.6f}" for value in row] for row in rows]
    assert ours == theirs
    for name in DEPLOYMENTS:
        with Deployment.open(old_url, name) as dep:
            assert dep.audit(sample=2).clean
            assert differences or in_agreement(dep)


@pytest.fixture
def gates_url(tmp_path: Path) -> str:
    shutil.copy(DATA / "written_by_gates.db", tmp_path / "gates.db")
    return f"sqlite:///{tmp_path}/gates.db"


def test_what_gates_in_python_wrote_goes_on_bit_for_bit(gates_url: str) -> None:
    """``cucb`` and others were gates in Python and are compositions now."""
    expected = json.loads((DATA / "written_by_gates.json").read_text())
    assert old_gates_store.continued(gates_url) == expected["deployments"]
    for name in old_gates_store.POLICIES:
        with Deployment.open(gates_url, name) as dep:
            report = dep.audit(sample=0)
            assert report.clean, report
            assert report.level == "replayed"


def test_a_state_file_of_a_gate_in_python_goes_on(tmp_path: Path) -> None:
    expected = json.loads((DATA / "written_by_gates.json").read_text())
    shutil.copy(DATA / "written_by_gates.c4b", tmp_path / "state.c4b")
    assert old_gates_store.banks(tmp_path / "state.c4b") == expected["policy"]


@pytest.mark.parametrize("name", old_gates_store.POLICIES)
def test_a_new_store_has_the_compositions(tmp_path: Path, name: str) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    terms = {"alpha": 0.2, "reserve": 0.5, **old_gates_store.POLICIES[name]}
    with Deployment.create(url, name, old_gates_store.MODEL, policy=name, **terms) as dep:
        dep.learn(old_gates_store.ARMS, old_gates_store.MEANS)
        old_gates_store.go_on(dep, name, 3)
        old_gates_store.go_on(dep, name, 4)
    with Deployment.open(url, name) as dep:
        assert isinstance(dep._transactor.configuration.spec, Composition)
        old_gates_store.go_on(dep, name, 5)
        assert in_agreement(dep)
        report = dep.audit(sample=0)
        assert report.clean, report
