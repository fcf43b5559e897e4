"""Confidence sets in plain Python in a study: the slow loop, the same rows however they are made."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import c4b
from c4b.evidence import PythonSet, SetView, register_set
from c4b.evidence.sets import table
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.results.results import NoResults, read
from c4b.study.spec import identity
from c4b.study.spec.plan import Method, Study
from support.small_studies import small_study


def ridges(model: c4b.LinearModel) -> np.ndarray:
    return np.array([model.ridge])


def rebuild(view: SetView) -> None:
    """The paper's (4) to (6) in NumPy."""
    model = view.model
    shape = view.gram + model.ridge * np.eye(model.dim)
    view.inverse[0] = np.linalg.inv(shape)
    view.estimate[0] = np.linalg.solve(shape, view.moment)
    log_det = np.linalg.slogdet(shape)[1] - model.dim * math.log(model.ridge)
    radius = model.noise * math.sqrt(log_det - 2.0 * math.log(model.delta))
    view.radius[0] = radius + math.sqrt(model.ridge) * model.norm_bound


@pytest.fixture(autouse=True)
def numpy_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_TABLE", dict(table._TABLE))
    register_set(PythonSet("in-numpy", "the paper's set, in NumPy", ridges, rebuild=rebuild))


def both(episodes: int = 4) -> Study:
    methods = (
        Method("compiled", "refresh", "self-normalized"),
        Method("python", "refresh", "in-numpy"),
        Method("plus", "reserve-c4b+"),
    )
    return small_study(episodes=episodes).with_(methods=methods)


def test_a_set_in_python_finds_what_the_compiled_one_finds(tmp_path: Path) -> None:
    found = run(both(), tmp_path)
    for s in range(len(found.study.settings)):
        for metric in Metric:
            python, compiled = (found.values(s, label, metric) for label in ("python", "compiled"))
            assert python == pytest.approx(compiled, rel=1e-9, abs=1e-9), metric


def test_jobs_chunks_and_the_methods_beside_it_leave_no_trace(tmp_path: Path) -> None:
    whole = run(both(), tmp_path / "whole", jobs=1).frame
    cut = run(both(), tmp_path / "cut", jobs=2, chunk=1)
    assert (cut.folder / "results.parquet").read_bytes() == (
        tmp_path / "whole" / "results.parquet"
    ).read_bytes()
    alone = run(both().with_(methods=both().methods[1:2]), tmp_path / "alone").frame
    assert alone.equals(whole.filter(pl.col("method") == "python"))


def test_a_set_of_the_setting_applies_to_every_method(tmp_path: Path) -> None:
    settings = tuple(dataclasses.replace(s, confidence="in-numpy") for s in both().settings)
    methods = (Method("refresh", "refresh"), Method("compiled", "refresh", "self-normalized"))
    found = run(both().with_(settings=settings, methods=methods), tmp_path)
    ratios = [found.values(0, label, Metric.REWARD_RATIO) for label in ("refresh", "compiled")]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-9)


def test_rows_depend_on_the_file_that_defines_the_set(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity.identity(both())
    assert identity.identity(both()) == before
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"edited")
    assert identity.identity(both()) != before


def test_results_of_a_set_that_is_not_installed(tmp_path: Path) -> None:
    run(both(2), tmp_path)
    document = json.loads((tmp_path / "study.json").read_text())
    document["study"]["methods"][1]["confidence"] = "of-another-package"
    (tmp_path / "study.json").write_text(json.dumps(document))
    with pytest.raises(NoResults, match=r"of-another-package.*install the package that offers this set"):
        read(tmp_path)
