"""Real processes: Ctrl-C, SIGTERM, SIGKILL, and the same command again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from c4b.study.engine.run import run
from c4b.study.spec import study_file as files
from support.service_process import C4B, free_port
from support.shop_world import BASELINE, create, rivals
from support.small_studies import start, study_file

pytestmark = pytest.mark.slow  # processes that are killed

LONG = """
name = "long"
episodes = {episodes}
seed = 7
methods = ["refresh", "linucb"]
[candidates]
rho = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
[deployment]
rounds = 60
"""
EPISODES = 1600  # chunks of 256, some tenths of a second each


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("expected")
    path = study_file(folder, LONG.format(episodes=EPISODES))
    return (run(files.load(path), folder / "out").folder / "results.parquet").read_bytes()


def stopped_half_way(path: Path, out: Path, how: signal.Signals) -> tuple[int, str]:
    """Send the signal once the first chunk is on disk; returns exit code and stderr."""
    process = start("study", "run", path, "--out", out, "--jobs", 1)
    patience = time.monotonic() + 120.0
    while not list(out.glob("chunks/*/*.npz")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < patience
        time.sleep(0.01)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


INTERRUPTED_IMPORT = """
import sys
import c4b.__main__

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "c4b.cli.study_commands":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
c4b.__main__.run()
"""


def test_ctrl_c_while_a_command_is_imported() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


SAID = {
    signal.SIGINT: (130, "c4b: interrupted; the same command goes on from here\n"),
    signal.SIGTERM: (143, "c4b: stopped by SIGTERM; the same command goes on from here\n"),
}


@pytest.mark.parametrize("how", [*SAID, signal.SIGKILL])
def test_the_same_command_goes_on(tmp_path: Path, expected: bytes, how: signal.Signals) -> None:
    path, out = study_file(tmp_path, LONG.format(episodes=EPISODES)), tmp_path / "out"
    code, err = stopped_half_way(path, out, how)
    assert not (out / "results.parquet").exists()
    if how in SAID:
        assert code == SAID[how][0]
        assert err.endswith(SAID[how][1])
        assert "Traceback" not in err
    else:
        assert code == -signal.SIGKILL
    kept = sum(
        stop - begin for begin, stop in (map(int, p.stem.split("-")) for p in out.glob("chunks/*/*.npz"))
    )
    assert 0 < kept < EPISODES

    again = start("study", "run", path, "--out", out)
    _, err = again.communicate(timeout=120)
    assert again.returncode == 0
    assert err.startswith(f"long: {kept}/{EPISODES} episodes\n")  # not from zero
    assert json.loads((out / "study.json").read_text())["run"]["episodes_resumed"] == kept
    assert (out / "results.parquet").read_bytes() == expected


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_of_an_audit_goes_on_alone(sqlite_url: str, how: signal.Signals) -> None:
    rng = np.random.default_rng(0)
    with create(sqlite_url) as dep:
        dep.decide_many([(rivals(rng), BASELINE) for _ in range(1000)])
    command = [*C4B, "deploy", "audit", sqlite_url, "shop", "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        parts: list[psutil.Process] = []
        while len(parts) < 2:  # until both have begun
            assert process.poll() is None
            children = psutil.Process(process.pid).children()
            parts = [child for child in children if any("shop.db" in f.path for f in child.open_files())]
        if how == signal.SIGINT:
            os.killpg(process.pid, how)  # as Ctrl-C in a terminal does
        else:
            process.send_signal(how)
        gone, alive = psutil.wait_procs(parts, 60)
        assert (len(gone), alive) == (2, [])
        _, err = process.communicate(timeout=60)
    if how != signal.SIGKILL:  # who is killed says nothing
        code, last = (130, "interrupted") if how == signal.SIGINT else (143, "stopped by SIGTERM")
        assert process.returncode == code
        assert err.endswith(f"c4b: {last}\n")
        assert "Traceback" not in err


def test_a_service_that_is_stopped_while_it_starts(tmp_path: Path) -> None:
    command = [*C4B, "serve", "--store", f"sqlite:///{tmp_path}/a.db", "--port", str(free_port())]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "no token" in process.stderr.readline()  # its first line, long before it listens
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
    assert process.returncode == 0
    assert "Traceback" not in rest


def test_an_error_in_a_process_is_one_line(tmp_path: Path) -> None:
    process = start("study", "run", tmp_path / "none.toml")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("c4b: STUDY = ")


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    with start("policies") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
