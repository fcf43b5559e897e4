"""The same seed gives the same bytes, however the work is cut up."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from c4b.study.engine.chunk import Chunk, simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.results.parquet_files import ROW_GROUP, chunk_frame, write_results
from c4b.study.spec import study_file as files
from support.small_studies import small_study

STUDY = small_study(episodes=17)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    return content(run(STUDY, tmp_path_factory.mktemp("whole"), jobs=1).folder)


def content(folder: Path) -> tuple[bytes, bytes]:
    return tuple((folder / f"{name}.parquet").read_bytes() for name in ("results", "trajectories"))


@pytest.mark.parametrize("chunk", [1, 3, 16, 17, 1000])
@pytest.mark.parametrize("jobs", [1, 2])
def test_jobs_and_chunk_size_leave_no_trace(
    tmp_path: Path, expected: tuple[bytes, bytes], jobs: int, chunk: int
) -> None:
    assert content(run(STUDY, tmp_path, jobs=jobs, chunk=chunk).folder) == expected


class Enough(Exception):
    pass


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("then", [1, 4, 16])
def test_an_interrupted_run_resumes(
    tmp_path: Path, expected: tuple[bytes, bytes], first: int, then: int
) -> None:
    def stop(done: int, total: int) -> None:
        if done >= 7:
            raise Enough

    with pytest.raises(Enough):
        run(STUDY, tmp_path, jobs=1, chunk=first, progress=stop)
    assert not (tmp_path / "results.parquet").exists()
    seen: list[int] = []
    found = run(STUDY, tmp_path, chunk=then, progress=lambda done, total: seen.append(done))
    assert seen[0] >= 7
    assert found.run["episodes_resumed"] == seen[0]
    assert content(tmp_path) == expected
    assert not (tmp_path / "chunks").exists()


def test_half_written_chunks_do_not_count(tmp_path: Path, expected: tuple[bytes, bytes]) -> None:
    def stop(done: int, total: int) -> None:
        if done >= 6:
            raise Enough

    with pytest.raises(Enough):
        run(STUDY, tmp_path, jobs=1, chunk=2, progress=stop)
    chunks = next((tmp_path / "chunks").glob("*/"))
    next(chunks.glob("*.npz")).unlink()  # rows without sums
    (chunks / "000000008-000000010.part").write_bytes(b"half")
    run(STUDY, tmp_path, chunk=2)
    assert content(tmp_path) == expected


def test_a_subset_of_methods_gives_the_same_rows(tmp_path: Path) -> None:
    subset = small_study(("refresh", "separate"), episodes=17)
    part, whole = run(subset, tmp_path / "part").frame, run(STUDY, tmp_path / "whole").frame
    for name in ("refresh", "separate"):
        of = pl.col("method") == name
        assert part.filter(of).equals(whole.filter(of), null_equal=True)


def test_a_setting_alone_gives_the_same_rows(tmp_path: Path) -> None:
    alone = STUDY.with_(settings=STUDY.settings[1:])
    part, whole = run(alone, tmp_path / "part").frame, run(STUDY, tmp_path / "whole").frame
    assert part.drop("setting").equals(whole.filter(pl.col("setting") == 1).drop("setting"))


def test_a_longer_study_begins_with_the_shorter_one(tmp_path: Path) -> None:
    short = run(STUDY.with_(episodes=5), tmp_path / "short").frame
    long = run(STUDY, tmp_path / "long").frame
    assert long.head(short.height).equals(short, null_equal=True)


def test_another_seed_gives_other_rows(tmp_path: Path) -> None:
    first, second = (run(STUDY.with_(seed=s), tmp_path / str(s)).frame for s in (7, 8))
    assert not first.equals(second)


def test_methods_and_settings_share_their_draws() -> None:
    """LinUCB never looks at the reserve: with common draws its rows are equal, not just alike."""
    study = small_study(("linucb",))
    more = study.with_(
        settings=tuple(s.__class__(**{**_fields(s), "reserve": 2.0}) for s in study.settings)
    )
    first, second = simulate(study, 0, 4).metrics, simulate(more, 0, 4).metrics
    ratio = Metric.REWARD_RATIO
    assert np.array_equal(first[..., ratio], second[..., ratio])


def test_what_settings_share_is_what_each_would_make_alone() -> None:
    """Scenes and learned histories are made once an episode for all settings that agree on them."""
    study = files.load("paper")
    whole = simulate(study, 2, 3)
    for s in (0, 1, 7, 17, 18, 23, 35):
        alone = simulate(study.with_(settings=(study.settings[s],)), 2, 3)
        assert alone.metrics[:, 0].tobytes() == whole.metrics[:, s].tobytes()


def _fields(setting: object) -> dict[str, object]:
    return {name: getattr(setting, name) for name in type(setting).__slots__}


def test_row_groups_do_not_depend_on_chunks(tmp_path: Path) -> None:
    """More rows than one row group holds, cut in three ways."""
    study = small_study(("refresh",), episodes=ROW_GROUP)  # two settings: two row groups
    metrics = np.random.default_rng(1).random((study.episodes, 2, 1, len(Metric)))
    files = []
    for size in (5_000, 30_000, study.episodes):
        paths = []
        for start in range(0, study.episodes, size):
            stop = min(start + size, study.episodes)
            none = np.zeros((2, 1, 15), dtype=np.int64)
            frame = chunk_frame(study, Chunk(start, stop, metrics[start:stop], none, none))
            paths.append(tmp_path / f"{size}-{start}.parquet")
            frame.write_parquet(paths[-1])
        target = tmp_path / f"results-{size}.parquet"
        write_results(paths, target)
        files.append(target.read_bytes())
    assert files[0] == files[1] == files[2]
