"""Candidates from a file or a Python function."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.spec import study_file as files
from c4b.study.world import candidates
from support.small_studies import TOML, study_file

TABLE = np.round(np.random.default_rng(1).normal(size=(9, 3)), 6)


def written(folder: Path, kind: str) -> str:
    frame = pl.DataFrame({f"x{i}": TABLE[:, i] for i in range(3)})
    name = f"pool.{kind}"
    if kind == "csv":
        frame.write_csv(folder / name)
    elif kind == "parquet":
        frame.write_parquet(folder / name)
    else:
        np.save(folder / name, TABLE)
    return name


def with_source(generator: str, source: str) -> str:
    return TOML.replace(
        "[candidates]", f'[candidates]\ngenerator = "{generator}"\nsource = "{source}"'
    ).replace("rho = 0.4\n", "")


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_a_pool_from_a_file_runs(tmp_path: Path, kind: str) -> None:
    tmp_path /= "no [pattern]*"
    tmp_path.mkdir()
    study = files.load(study_file(tmp_path, with_source("file", written(tmp_path, kind))))
    setting = study.settings[0]
    pools = candidates.pools(setting, candidates.raw_pools(setting, 1, 0))
    rows = pools.transpose(0, 2, 1)  # every round: count different rows of the table
    known = {tuple(row) for row in TABLE}
    for pool in rows:
        assert len({tuple(row) for row in pool} & known) == setting.count
    assert len({pool.tobytes() for pool in rows}) > 1
    assert run(study, tmp_path / "out").frame.height == 6 * 4 * 3


def test_every_file_format_gives_the_same_rows(tmp_path: Path) -> None:
    frames = []
    for kind in ("csv", "parquet", "npy"):
        study = files.load(study_file(tmp_path, with_source("file", written(tmp_path, kind))))
        frames.append(run(study, tmp_path / kind).frame)
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])


def test_every_row_of_a_file_is_drawn_equally_often(tmp_path: Path) -> None:
    text = with_source("file", written(tmp_path, "npy")).replace("rounds = 12", "rounds = 3000")
    setting = files.load(study_file(tmp_path, text)).settings[0]
    pools = candidates.raw_pools(setting, 1, 0)
    share = [np.mean((pools[:, 0] == row[0]).any(axis=1)) for row in TABLE]
    np.testing.assert_allclose(share, 5 / 9, atol=5 * np.sqrt(0.25 / 3000))


def test_a_python_function_beside_the_study_file_runs(tmp_path: Path) -> None:
    (tmp_path / "my_pools_of_this_test.py").write_text(
        "import numpy as np\n"
        "def pools(rng, rounds, count, dim):\n"
        "    return np.concatenate([np.ones((rounds, count, 1)),"
        " rng.uniform(-0.2, 0.2, (rounds, count, dim - 1))], axis=2)\n"
    )
    study = files.load(study_file(tmp_path, with_source("python", "my_pools_of_this_test:pools")))
    pools = candidates.raw_pools(study.settings[0], 1, 0)
    assert pools.shape == (12, 3, 5)
    assert np.all(pools[:, 0] == 1.0)
    assert np.abs(pools[:, 1:]).max() <= 0.2
    found = run(study, tmp_path / "out")
    assert found.values(0, "refresh", Metric.FALLBACK).mean() < 1.0


def test_an_edited_pool_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    path = study_file(tmp_path, with_source("file", written(tmp_path, "npy")))
    first = run(files.load(path), tmp_path / "out").frame
    np.save(tmp_path / "pool.npy", TABLE + 0.01)
    second = run(files.load(path), tmp_path / "out").frame
    assert not first.equals(second)
