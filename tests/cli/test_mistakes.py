"""Whatever goes wrong: exit code 2, one line that says what to do, nothing written, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.small_studies import TOML, Call, study_file


def failed(c4b: Call, *arguments: object) -> str:
    c4b(*arguments)
    assert c4b.code == 2
    assert c4b.err.startswith("c4b: ")
    assert c4b.err.count("\n") == 1
    assert not c4b.out
    return c4b.err


def test_a_bad_study_file(c4b: Call, tmp_path: Path) -> None:
    path = study_file(tmp_path, TOML.replace("rho = 0.4", "rho = -0.4"))
    message = failed(c4b, "study", "run", path, "--out", tmp_path / "out")
    assert message == f"c4b: {path}: candidates.rho = -0.4: must be a number >= 0\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [("--episodes", 0), ("--seed", -1), ("--jobs", 0), ("--episodes", 1)])
def test_impossible_options(c4b: Call, tmp_path: Path, option: tuple[str, int]) -> None:
    message = failed(c4b, "study", "run", study_file(tmp_path), "--out", tmp_path / "out", *option)
    assert f"{option[0][2:]} = {option[1]}: " in message
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_impossible_jobs_of_a_finished_study(c4b: Call, tmp_path: Path) -> None:
    call = ("study", "run", study_file(tmp_path), "--out", tmp_path / "out")
    assert c4b(*call).code == 0
    assert "jobs = 0: at least 1" in failed(c4b, *call, "--jobs", 0)


def test_options_that_are_no_numbers(c4b: Call, tmp_path: Path) -> None:
    assert c4b("reproduce", "--episodes", "many", "--out", tmp_path / "out").code == 2
    assert "--episodes" in c4b.err
    assert "Traceback" not in c4b.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("under", ["", "deeper"])
def test_a_folder_that_cannot_be_written(c4b: Call, tmp_path: Path, under: str) -> None:
    (tmp_path / "file").write_text("mine")
    message = failed(c4b, "study", "run", study_file(tmp_path), "--out", tmp_path / "file" / under)
    assert "cannot be written" in message
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_of_the_system(c4b: Call, tmp_path: Path) -> None:
    message = failed(c4b, "study", "run", study_file(tmp_path), "--out", "/proc/c4b")
    assert "out = '/proc/c4b': cannot be written" in message


def test_init_into_a_folder_that_is_not_there(c4b: Call, tmp_path: Path) -> None:
    assert "No such file or directory" in failed(c4b, "study", "init", tmp_path / "no" / "study.toml")


def test_a_folder_of_another_study(c4b: Call, tmp_path: Path) -> None:
    c4b("study", "run", study_file(tmp_path), "--out", tmp_path / "out")
    message = failed(c4b, "study", "run", tmp_path / "study.toml", "--out", tmp_path / "out", "--seed", 8)
    assert "holds another study (small, 6 episodes, seed 7)" in message


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_folder_without_results(c4b: Call, tmp_path: Path, command: str) -> None:
    folders = [tmp_path] if command == "report" else [tmp_path, tmp_path]
    assert "study.json is missing" in failed(c4b, "study", command, *folders)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["results.parquet", "trajectories.parquet", "study.json"])
def test_damaged_results(c4b: Call, tmp_path: Path, name: str) -> None:
    c4b("study", "run", study_file(tmp_path), "--out", tmp_path / "out")
    path = tmp_path / "out" / name
    path.write_bytes(path.read_bytes()[:100])
    assert "cannot be read" in failed(c4b, "study", "report", tmp_path / "out")


def test_a_picture_of_no_known_kind(c4b: Call, tmp_path: Path) -> None:
    said = failed(c4b, "diagnose", tmp_path / "log.csv", "--figure", tmp_path / "figure.csv")
    assert "must end in .png, .pdf, .svg" in said


def run(words: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """A shell's line, in which ``c4b`` is the command."""
    line = words.replace("c4b", f"'{sys.executable}' -c 'from c4b.cli.main import main; main()'")
    return subprocess.run(line, shell=True, capture_output=True, env={**os.environ, **more}, check=False)


@pytest.mark.slow
def test_an_output_that_is_closed_or_lacks_characters() -> None:
    assert run("c4b policies >&-").stderr == b""
    ascii_only = run("c4b policies", PYTHONIOENCODING="ascii")
    assert (ascii_only.returncode, ascii_only.stderr) == (0, b"")
    assert b"reserve-c4b+" in ascii_only.stdout


@pytest.mark.slow
def test_a_log_whose_name_is_beyond_ascii_without_utf_8(tmp_path: Path) -> None:
    c_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    rows = "".join(f"{n % 2},{n % 3 / 4},{n % 5}\n" for n in range(200))
    (tmp_path / "lög.csv").write_text(f"action,reward,x\n{rows}")
    columns = "--action action --reward reward --context x"
    found = run(f"c4b diagnose '{tmp_path}/lög.csv' {columns}", **c_locale)
    assert b"Traceback" not in found.stderr
    assert found.stdout
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/l\xf6g.csv"))).write_text(f"action,reward,x\n{rows}")
    refused = run(f"c4b diagnose '{tmp_path}'/l*g.csv {columns}".replace("l*g", "l\udcf6g"), **c_locale)
    assert b"in UTF-8; rename it" in refused.stderr.replace(b"\n", b" ")


def test_no_such_command(c4b: Call) -> None:
    assert c4b("studdy").code == 2
    assert "Traceback" not in c4b.err
