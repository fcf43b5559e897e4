"""A folder keeps what it has: other studies are refused, more episodes are added."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from c4b.errors import InvalidInput
from c4b.study.engine.run import run
from c4b.study.results import results, results_folder
from c4b.study.results.results_folder import Busy, OtherStudy, ResultsFolder, is_complete
from support.small_studies import small_study

STUDY = small_study(("refresh", "linucb"), episodes=6)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def other_studies() -> dict[str, object]:
    half = tuple(dataclasses.replace(setting, reserve=0.5) for setting in STUDY.settings)
    return {
        "seed": STUDY.with_(seed=8),
        "setting": STUDY.with_(settings=half),
        "methods": STUDY.with_(methods=STUDY.methods[:1]),
        "fewer episodes": STUDY.with_(episodes=5),
    }


@pytest.mark.parametrize("what", other_studies())
def test_finished_results_are_not_overwritten(tmp_path: Path, what: str) -> None:
    run(STUDY, tmp_path)
    before = files(tmp_path)
    with pytest.raises(OtherStudy, match=r"6 episodes, seed 7.*choose another --out"):
        run(other_studies()[what], tmp_path)  # type: ignore[arg-type]
    assert files(tmp_path) == before


def test_more_episodes_are_added_to_a_finished_study(tmp_path: Path) -> None:
    run(STUDY, tmp_path / "grown")
    grown = run(STUDY.with_(episodes=15), tmp_path / "grown")
    run(STUDY.with_(episodes=15), tmp_path / "whole")
    assert grown.run["episodes_resumed"] == 6
    for name in ("results.parquet", "trajectories.parquet"):
        assert files(tmp_path / "grown")[name] == files(tmp_path / "whole")[name]


def test_a_finished_study_is_complete_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_complete(STUDY, tmp_path)
    run(STUDY, tmp_path)
    assert is_complete(STUDY, tmp_path)
    assert not is_complete(STUDY.with_(episodes=7), tmp_path)
    assert not is_complete(STUDY.with_(title="Another title"), tmp_path)
    monkeypatch.setattr(results_folder.identity, "code", lambda: "another version")
    assert not is_complete(STUDY, tmp_path)
    assert run(STUDY, tmp_path).run["episodes_resumed"] == 0  # old rows are not mixed with new


def test_a_new_title_needs_no_simulation(tmp_path: Path) -> None:
    run(STUDY, tmp_path)
    before = files(tmp_path)
    found = run(STUDY.with_(title="Another title"), tmp_path)
    assert (found.study.title, found.run["episodes_resumed"]) == ("Another title", 6)
    assert files(tmp_path)["results.parquet"] == before["results.parquet"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"study": {}}'])
def test_a_study_json_that_cannot_be_read_is_not_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(OtherStudy, match="cannot be read"):
        run(STUDY, tmp_path)
    with pytest.raises(results.NoResults):
        results.read(tmp_path)
    assert (tmp_path / "study.json").read_text() == text


def test_a_folder_under_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "under"):
        with pytest.raises(InvalidInput, match=r"out = .*cannot be written"):
            run(STUDY, out)


def test_a_users_own_folder_of_that_name_survives(tmp_path: Path) -> None:
    (tmp_path / "chunks").mkdir()
    (tmp_path / "chunks" / "mine.txt").write_text("mine")
    run(STUDY, tmp_path)
    assert [path.name for path in (tmp_path / "chunks").iterdir()] == ["mine.txt"]


def test_results_of_another_size_are_refused(tmp_path: Path) -> None:
    run(STUDY, tmp_path)
    document = json.loads((tmp_path / "study.json").read_text())
    document["study"]["episodes"] = 7
    (tmp_path / "study.json").write_text(json.dumps(document))
    with pytest.raises(results.NoResults, match="does not belong"):
        results.read(tmp_path)


def test_a_second_process_in_the_folder_is_refused(tmp_path: Path) -> None:
    held = ResultsFolder(STUDY, tmp_path)
    script = (
        "import fcntl, sys\n"
        f"file = open({str(tmp_path / 'chunks' / 'lock')!r}, 'w')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Busy, match="wait for it"), held.locked():
            pass
        other.communicate("")
    with held.locked():
        assert held.episodes_done == 0
