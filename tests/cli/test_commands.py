"""Commands: their output and their exit codes."""

import html
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from c4b.cli.console.output import COMPILING
from c4b.study.results import published_numbers as published
from support.small_studies import TOML, Call, study_file

pytestmark = pytest.mark.slow  # commands that run studies

COMMANDS = [[], ["reproduce"], ["policies"], ["study"],
            *(["study", name] for name in ("run", "init", "report", "compare"))]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(c4b: Call, command: list[str]) -> None:
    assert c4b(*command, "--help").code == 0
    assert f"Usage: {' '.join(['c4b', *command])}" in " ".join(c4b.out.split())
    assert not c4b.err


def test_the_version(c4b: Call) -> None:
    assert c4b("--version").code == 0
    assert c4b.out.startswith("reserve-c4b ")


def test_the_package_is_the_command() -> None:
    """Where scripts are not on the path."""
    done = subprocess.run(
        [sys.executable, "-m", "c4b", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("reserve-c4b ")
    wrong = subprocess.run(
        [sys.executable, "-m", "c4b", "nothing"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "Usage: c4b " in wrong.stderr


def test_commands_do_not_load_the_web_framework() -> None:
    """It takes as long to load as they do; only serve and demo need it."""
    looked = "import sys, c4b.cli.main; print('fastapi' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_policies_are_listed_in_full(c4b: Call) -> None:
    assert c4b("policies").code == 0
    for name in published.METHODS:
        assert name in c4b.out
    assert "no gate: highest UCB, certifies nothing" in c4b.out  # not cut off


def test_a_deployment_has_the_recommended_policy_by_default(c4b: Call, tmp_path: Path) -> None:
    terms = ("--dim", 2, "--noise", 0.1, "--norm-bound", 1)
    assert c4b("deploy", "create", f"sqlite:///{tmp_path}/a.db", "shop", *terms).code == 0
    assert json.loads(c4b.out)["policy"] == "reserve-c4b+"


def test_run_prints_a_table_and_a_verdict(c4b: Call, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert c4b("study", "run", study_file(tmp_path), "--out", out).code == 0
    assert "history=baseline, reserve=0.5" in c4b.out
    assert f"Report: {out / 'report.html'}\n" in c4b.out
    assert c4b.out.endswith("violations and 0 coverage failures in 48 gated episodes.\n")
    progress = c4b.err.replace(f" ({COMPILING})", "")  # where no earlier test had it compiled
    assert progress == "small: 0/6 episodes\nsmall: 6/6 episodes\n"
    made = {path.name for path in out.iterdir()}
    assert made == {"results.parquet", "trajectories.parquet", "study.json", "report.html", "tables",
                    "figures"}  # fmt: skip
    ran = json.loads((out / "study.json").read_text())["run"]
    assert ran["command"].startswith("c4b study run ")
    assert html.escape(ran["command"]) in (out / "report.html").read_text()


def test_the_default_folder_is_named_after_the_study(
    c4b: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert c4b("study", "run", study_file(tmp_path)).code == 0
    assert (tmp_path / "results" / "small" / "report.html").is_file()


def test_a_finished_study_is_not_run_again(c4b: Call, tmp_path: Path) -> None:
    call = ("study", "run", study_file(tmp_path), "--out", tmp_path / "out")
    c4b(*call)
    before = (tmp_path / "out" / "results.parquet").stat()
    assert c4b(*call).code == 0
    assert "nothing to simulate" in c4b.out
    after = (tmp_path / "out" / "results.parquet").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_finished_study_asks_no_cluster_and_says_so(c4b: Call, tmp_path: Path) -> None:
    call = ("study", "run", study_file(tmp_path), "--out", tmp_path / "out")
    c4b(*call)
    assert c4b(*call, "--cluster", "tcp://nowhere:1").code == 0
    assert "nothing to simulate (so tcp://nowhere:1 was not asked)." in c4b.out


def test_a_study_without_the_late_yardstick_has_no_column_for_it(c4b: Call, tmp_path: Path) -> None:
    assert c4b("study", "run", study_file(tmp_path), "--out", tmp_path / "out").code == 0
    assert "- linucb " in c4b.out
    assert "linucb, late" not in c4b.out
    assert "Floor: the fallback that no gate certified over the whole set can avoid." in c4b.out


def test_options_override_the_file(c4b: Call, tmp_path: Path) -> None:
    path = study_file(tmp_path)
    assert (
        c4b("study", "run", path, "--out", tmp_path / "o", "--episodes", 3, "--seed", 9, "--jobs", 1).code
        == 0
    )
    saved = json.loads((tmp_path / "o" / "study.json").read_text())
    assert (saved["study"]["episodes"], saved["study"]["seed"], saved["run"]["workers"]) == (3, 9, 1)


def test_report_rebuilds_everything_from_the_results(c4b: Call, tmp_path: Path) -> None:
    out = tmp_path / "out"
    c4b("study", "run", study_file(tmp_path), "--out", out)
    before = {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    for name in ("tables", "figures"):
        shutil.rmtree(out / name)
    (out / "report.html").unlink()
    (tmp_path / "study.toml").unlink()
    assert c4b("study", "report", out).code == 0
    after = {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert before == after


def test_init_writes_an_example_that_runs(
    c4b: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert c4b("study", "init").code == 0
    assert c4b("study", "run", "study.toml", "--episodes", 2).code == 0
    assert "refresh, mixture" in c4b.out
    text = Path("study.toml").read_text()
    assert c4b("study", "init").code == 2
    assert "exists already" in c4b.err
    assert Path("study.toml").read_text() == text


def test_compare_prints_paired_differences(c4b: Call, tmp_path: Path) -> None:
    c4b("study", "run", study_file(tmp_path), "--out", tmp_path / "a")
    other = study_file(tmp_path, TOML.replace("sigma = 0.2", "sigma = 0.1"), "other.toml")
    c4b("study", "run", other, "--out", tmp_path / "b")
    assert c4b("study", "compare", tmp_path / "a", tmp_path / "b").code == 0
    assert c4b.out.count("history=diverse, reserve=0.0") == 3
    assert "difference [95 % interval]" in c4b.out
    assert c4b("study", "compare", tmp_path / "a", tmp_path / "a").code == 0
    assert "+0.0000 [+0.0000, +0.0000]" in c4b.out


def test_compare_says_what_it_compared(c4b: Call, tmp_path: Path) -> None:
    c4b("study", "run", study_file(tmp_path), "--out", tmp_path / "a")
    text = TOML.replace("reserve = [0.0, 0.5]", "reserve = [0.0, 2.0]\nalpha = 0.1").replace(
        '"linucb"', '"separate"'
    )
    c4b("study", "run", study_file(tmp_path, text, "b.toml"), "--out", tmp_path / "b", "--episodes", 4)
    assert c4b("study", "compare", tmp_path / "a", tmp_path / "b").code == 0
    assert c4b.out.splitlines()[-4:] == [
        "Paired over 4 episodes (of 6 and 4).",
        f"Only in {tmp_path / 'a'}, left out: 2 settings (history=diverse, reserve=0.5 | "
        "history=baseline, reserve=0.5); 1 method (linucb).",
        f"Only in {tmp_path / 'b'}, left out: 2 settings (history=diverse, reserve=2.0 | "
        "history=baseline, reserve=2.0); 1 method (separate).",
        "What differs: alpha 0.05 against 0.1.",
    ]


def test_reproduce_ends_with_table_and_verdict(
    c4b: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight episodes, with an acceptance that fits them and with one that nothing fits."""
    call = ("reproduce", "--episodes", 8, "--out", tmp_path / "out")
    monkeypatch.setattr(published, "ACCEPTED", 1000.0)
    assert c4b(*call).code == 0
    assert "(1.0606)" in c4b.out
    last = c4b.out.splitlines()[-1]
    assert last.startswith("REPRODUCED: largest |z| is ")
    assert "over 87 published numbers" in last
    assert (tmp_path / "out" / "comparison.json").is_file()
    monkeypatch.setattr(published, "ACCEPTED", 0.0)
    assert c4b(*call).code == 1
    assert c4b.out.splitlines()[-1].startswith("NOT REPRODUCED")


def test_labels_are_printed_as_they_are(c4b: Call, tmp_path: Path) -> None:
    text = TOML.replace('"contrast"', '{policy = "contrast", label = "mine [bold]x[/bold]"}')
    assert c4b("study", "run", study_file(tmp_path, text), "--out", tmp_path / "[red]out").code == 0
    assert "mine [bold]x[/bold]" in c4b.out
    assert "[red]out" in c4b.out
