"""The same chunks on a real Dask cluster of two processes, one of which dies half-way."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b.errors import InvalidInput
from c4b.study.engine import cluster as cluster_module
from c4b.study.engine.cluster import ClusterLost
from c4b.study.engine.run import run
from c4b.study.spec import identity
from c4b.study.spec import study_file as files
from support.python_gates import registered
from support.small_studies import TOML, small_study, study_file

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # a killed worker makes its nanny complain
]

STUDY = small_study(episodes=300, rounds=100)


def content(folder: Path) -> tuple[bytes, bytes]:
    return tuple((folder / f"{name}.parquet").read_bytes() for name in ("results", "trajectories"))


def test_a_killed_worker_changes_nothing(tmp_path: Path, cluster: Any) -> None:
    killed: list[int] = []

    def kill_half_way(done: int, total: int) -> None:
        if done >= total // 4 and not killed:
            killed.append(done)
            os.kill(cluster.workers[0].process.pid, signal.SIGKILL)

    address = cluster.scheduler_address
    found = run(STUDY, tmp_path / "cluster", cluster=address, chunk=3, progress=kill_half_way)
    assert killed[0] < 225  # a quarter at least was still to do
    assert found.run["workers"] == address
    run(STUDY, tmp_path / "threads")
    assert content(tmp_path / "cluster") == content(tmp_path / "threads")


def test_an_error_on_a_worker_is_the_same_typed_error(tmp_path: Path, cluster: Any) -> None:
    """A pool file that vanishes after the study was read, as on a worker without that disk."""
    (tmp_path / "pool.csv").write_text("a,b,c\n" + "1,0.1,0.2\n" * 5)
    source = '[candidates]\ngenerator = "file"\nsource = "pool.csv"'
    text = TOML.replace("[candidates]", source).replace("rho = 0.4\n", "")
    study = files.load(study_file(tmp_path, text))

    def vanish(done: int, total: int) -> None:
        (tmp_path / "pool.csv").unlink(missing_ok=True)

    with pytest.raises(InvalidInput, match="no such file"):
        run(study, tmp_path / "out", cluster=cluster.scheduler_address, progress=vanish)


def test_a_worker_with_other_code_is_refused(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "__version__", "99")  # as if this side were newer
    identity.code.cache_clear()
    try:
        with pytest.raises(InvalidInput, match="runs other code; install this very version"):
            run(STUDY, tmp_path, cluster=cluster.scheduler_address)
    finally:
        identity.code.cache_clear()


def test_a_worker_that_joins_later_with_other_code_computes_nothing() -> None:
    assert cluster_module.on_same_code(identity.code(), max, 1, 2) == 2
    with pytest.raises(InvalidInput, match="a worker that joined later runs other code"):
        cluster_module.on_same_code("other", max, 1, 2)


def test_a_scheduler_without_workers_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "SECONDS_FOR_A_WORKER", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as empty,
        pytest.raises(InvalidInput, match="has no worker; start one"),
    ):
        run(STUDY, tmp_path, cluster=empty.scheduler_address)


def test_a_gate_that_a_worker_does_not_know_is_refused(tmp_path: Path, cluster: Any) -> None:
    with registered(), pytest.raises(InvalidInput, match=r"entry points c4b\.gates.*silent"):
        run(small_study(("silent",)), tmp_path, cluster=cluster.scheduler_address)


def test_a_lost_scheduler_is_a_typed_error_and_the_run_resumes(tmp_path: Path) -> None:
    own = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None)

    def stop(done: int, total: int) -> None:
        if done:
            own.close()

    with own, pytest.raises(ClusterLost, match="the same command goes on"):
        run(STUDY, tmp_path, cluster=own.scheduler_address, chunk=3, progress=stop)
    assert run(STUDY, tmp_path).run["episodes_resumed"] >= 3


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", "127.0.0.1"])
def test_a_wrong_address_is_a_typed_error(tmp_path: Path, address: str) -> None:
    with pytest.raises(InvalidInput, match="no Dask scheduler answers there"):
        run(STUDY, tmp_path / "out", cluster=address)
