"""A results folder that the version before wrote: it is read, and its rows are not mixed with new ones.

``previous_version/`` was written by ``c4b study run small.toml`` of that version.
"""

import shutil
from pathlib import Path

import pytest

from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.results.compare_results import differences
from c4b.study.results.results import Results, read
from c4b.study.results.results_folder import OtherStudy, is_complete
from c4b.study.spec.study_file import load
from support.small_studies import Call

WRITTEN = Path(__file__).parent / "previous_version"
STUDY = load(WRITTEN / "small.toml")
SAME = ("contrast", "refresh")
"""In the others the norm ball bounds, too, since; and LinUCB after a baseline-only history meets
candidates of equal UCB, among which rounding decides."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(WRITTEN, tmp_path / "previous")


@pytest.fixture
def c4b(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(monkeypatch, capsys)


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The same study by this version."""
    return run(STUDY, tmp_path_factory.mktemp("again"))


def test_it_is_read(folder: Path) -> None:
    results = read(folder)
    assert results.study == STUDY
    assert results.values(2, "refresh", Metric.FALLBACK).tolist() == [1.0] * 6


@pytest.mark.slow
def test_its_report_is_written(c4b: Call, folder: Path) -> None:
    assert c4b("study", "report", folder).code == 0
    assert "mine: not below linucb in 3 of 4 settings" in c4b.out
    assert "c4b study run small.toml --out small" in (folder / "report.html").read_text()
    assert (folder / "tables" / "price.tex").is_file()


def test_it_is_compared_with_this_version(c4b: Call, folder: Path, again: Results) -> None:
    assert c4b("study", "compare", folder, again.folder).code == 0
    assert "Paired over 6 episodes." in c4b.out
    assert "What differs: nothing in the plans of what was paired." in c4b.out
    for difference in differences(read(folder), again):
        if difference.method in SAME:
            assert difference.reward_ratio.mean == pytest.approx(0.0, abs=1e-12)
            assert difference.fallback.mean == 0.0


def test_this_version_finds_the_same_numbers(again: Results) -> None:
    """But for the allowance for rounding."""
    before = read(WRITTEN)
    for s in range(len(STUDY.settings)):
        for label in SAME:
            for metric in Metric:
                assert again.values(s, label, metric) == pytest.approx(
                    before.values(s, label, metric), rel=1e-7, abs=1e-9, nan_ok=True
                )


@pytest.mark.slow
@pytest.mark.parametrize("episodes", [6, 8])
def test_continuing_it_says_that_no_row_is_reused(
    c4b: Call, folder: Path, tmp_path: Path, episodes: int
) -> None:
    study = folder / "small.toml"
    assert not is_complete(STUDY, folder)
    assert c4b("study", "run", study, "--out", folder, "--episodes", episodes).code == 0
    assert (
        f"{folder} holds 6 episodes of this study from another version of the code, or of a file that "
        f"the study reads: none of them is reused, all {episodes} episodes are simulated."
    ) in " ".join(c4b.out.split())
    results = read(folder)
    assert (results.study.episodes, results.run["episodes_resumed"]) == (episodes, 0)
    whole = run(STUDY.with_(episodes=episodes), tmp_path / "whole")
    for name in ("results.parquet", "trajectories.parquet"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert c4b("study", "run", study, "--out", folder, "--episodes", episodes + 1).code == 0
    assert "is reused" not in c4b.out  # these rows are of this version
    assert read(folder).run["episodes_resumed"] == episodes


def test_it_is_not_overwritten_by_another_study(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for other in (STUDY.with_(seed=8), STUDY.with_(episodes=5)):
        with pytest.raises(OtherStudy, match=r"6 episodes, seed 7"):
            run(other, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_an_unfinished_run_of_another_version_is_not_reused(c4b: Call, tmp_path: Path) -> None:
    chunks = tmp_path / "out" / "chunks" / "0123456789abcdef"
    chunks.mkdir(parents=True)
    (chunks / "000000000-000000002.npz").write_bytes(b"")
    assert c4b("study", "run", WRITTEN / "small.toml", "--out", tmp_path / "out").code == 0
    assert "out holds an unfinished run from another version" in c4b.out.replace("\n", " ")
    assert read(tmp_path / "out").run["episodes_resumed"] == 0
