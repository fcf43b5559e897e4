"""Study files: what they may say, and how each mistake is answered."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from c4b import policies
from c4b.errors import InvalidInput
from c4b.study.engine.chunk import simulate
from c4b.study.engine.run import run
from c4b.study.spec import study_file as files
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from support.small_studies import TOML, study_file


def edited(old: str, new: str) -> str:
    assert old in TOML
    return TOML.replace(old, new)


SOURCE = '[candidates]\ngenerator = "{}"\nsource = "{}"'
BAD = {  # text of the file, the key as the file spells it, part of the remedy
    "not TOML": ("name = [", "not TOML", "mend the syntax: Invalid value"),
    "unknown top key": ("colour = 1\n" + TOML, "colour", "unknown key; known are name, title"),
    "unknown key": (edited("count = 5", "cuont = 5"), "candidates.cuont", "known are generator, count"),
    "unknown section": (TOML + "[oven]\nheat = 1\n", "oven", "unknown key; known are"),
    "a section that is a number": (
        TOML.replace("[truth]", "[history]", 1).split("[history]", maxsplit=1)[0] + "truth = 3\n",
        "truth", "must be a section [truth]"),
    "text for a number": (edited("sigma = 0.2", 'sigma = "0.2"'), "truth.sigma", "positive number"),
    "boolean for a number": (edited("sigma = 0.2", "sigma = true"), "truth.sigma", "positive number"),
    "boolean in a sweep": (edited("sigma = 0.2", "sigma = [0.2, true]"), "truth.sigma", "positive"),
    "boolean for a whole number": (edited("rounds = 12", "rounds = true"), "deployment.rounds", "whole"),
    "boolean in a vector": (edited("[1.0, 0.5, 0.2]", "[1.0, 0.5, true]"), "truth.theta", "numbers"),
    "fraction for a count": (edited("count = 5", "count = 5.5"), "candidates.count", "whole number"),
    "zero count": (edited("count = 5", "count = 0"), "candidates.count", "at least 1"),
    "negative sigma": (edited("sigma = 0.2", "sigma = -0.2"), "truth.sigma", "positive"),
    "nan sigma": (edited("sigma = 0.2", "sigma = nan"), "truth.sigma", "positive"),
    "infinite reserve": (edited("[0.0, 0.5]", "inf"), "learner.reserve", ">= 0"),
    "negative reserve": (edited("[0.0, 0.5]", "-1"), "learner.reserve", ">= 0"),
    "negative rho": (edited("rho = 0.4", "rho = -0.4"), "candidates.rho", ">= 0"),
    "alpha of 1": (edited("[learner]", "[learner]\nalpha = 1.0"), "learner.alpha", "between 0 and 1"),
    "delta of 0": (edited("[learner]", "[learner]\ndelta = 0"), "learner.delta", "between 0 and 1"),
    "no ridge": (edited("[learner]", "[learner]\nridge = 0.0"), "learner.ridge", "positive"),
    "assumed sigma": (
        edited("[learner]", "[learner]\nassumed_sigma = -1.0"), "learner.assumed_sigma", "positive"),
    "norm bound below theta": (
        edited("[learner]", "[learner]\nnorm_bound = 1.0"), "learner.norm_bound",
        "at least the norm of theta, 1.1357"),
    "floor above the baseline": (
        edited("[learner]", "[learner]\nbaseline_floor = 1.01"), "learner.baseline_floor",
        "must be at most 1:"),
    "floor above some baselines": (
        edited("[learner]", "[learner]\nbaseline_floor = 0.9").replace(
            "sigma = 0.2", "sigma = 0.2\nbaseline_spread = 0.5"), "learner.baseline_floor",
        "must be at most 0.730742:"),
    "negative-mean baseline": (
        edited("[1.0, 0.0, 0.0]", "[-1.0, 0.0, 0.0]"), "truth.baseline", "must be positive"),
    "baseline of another length": (
        edited("[1.0, 0.0, 0.0]", "[1.0, 0.0]"), "truth.baseline", "vector of 3"),
    "empty theta": (edited("[1.0, 0.5, 0.2]", "[]"), "truth.theta", "list of numbers"),
    "infinite theta": (edited("[1.0, 0.5, 0.2]", "[1.0, inf, 0.2]"), "truth.theta[1]", "finite"),
    "unknown noise": (edited("sigma = 0.2", 'noise = "cauchy"'), "truth.noise", "'gaussian'"),
    "unknown history": (edited('["diverse", "baseline"]', '"none"'), "history.kind", "'diverse'"),
    "unknown generator": (
        edited("[candidates]", '[candidates]\ngenerator = "cube"'), "candidates.generator", "'sphere'"),
    "unknown confidence": (
        edited("[learner]", '[learner]\nconfidence = "big"'), "learner.confidence", "'mixture'"),
    "empty sweep": (edited("rho = 0.4", "rho = []"), "candidates.rho", "at least one value"),
    "duplicate in a sweep": (edited("[0.0, 0.5]", "[0.5, 0.5]"), "learner.reserve", "appears twice"),
    "1 and 1.0 in a sweep": (edited("[0.0, 0.5]", "[1, 1.0]"), "learner.reserve", "appears twice"),
    "no methods": (edited('["contrast", "refresh", "linucb"]', "[]"), "methods", "at least one"),
    "methods as text": (
        edited('["contrast", "refresh", "linucb"]', '"refresh"'), "methods", "at least one"),
    "unknown policy": (edited('"contrast"', '"contrst"'), "methods.policy", "'contrast'"),
    "unknown method key": (
        edited('"contrast"', '{policy = "contrast", colour = 1}'), "methods.colour", "unknown key"),
    "unknown method confidence": (
        edited('"contrast"', '{policy = "contrast", confidence = "big"}'), "methods.confidence",
        "'mixture'"),
    "a forced phase that is a number": (
        edited('"contrast"', '{policy = "contrast", after_forced_phase = 1}'),
        "methods.after_forced_phase", "True or False"),
    "a method that is a number": (edited('"contrast"', "3"), "methods", "must be a name,"),
    "a policy and its parts": (
        edited('"contrast"', '{policy = "contrast", score = "mean"}'), "methods.score", "not both"),
    "parts without a ledger": (
        edited('"contrast"', '{label = "x", score = "mean"}'), "methods", "ledger"),
    "parts without a label": (edited('"contrast"', '{ledger = "carry"}'), "methods.label", "text"),
    "parts that do not go together": (
        edited('"contrast"', '{label = "x", ledger = "revalue"}'), "methods.ledger", "does not go with"),
    "an unknown part": (
        edited('"contrast"', '{label = "x", ledger = "cary"}'), "methods.ledger", "'carry'"),
    "a label that is a number": (
        edited('"contrast"', '{policy = "contrast", label = 3}'), "methods.label", "text"),
    "duplicate labels": (edited('"contrast"', '"refresh"'), "methods", "its own label"),
    "zero episodes": (edited("episodes = 6", "episodes = 0"), "episodes", "at least 2"),
    "one episode": (edited("episodes = 6", "episodes = 1"), "episodes", "at least 2"),
    "episodes as text": (edited("episodes = 6", 'episodes = "6"'), "episodes", "whole number"),
    "negative seed": (edited("seed = 7", "seed = -7"), "seed", "at least 0"),
    "seed beyond 64 bits": (edited("seed = 7", "seed = 9223372036854775808"), "seed", "2**63"),
    "name as a path": (edited('"small"', '"../up"'), "name", "name of a folder"),
    "name as a number": (edited('"small"', "5"), "name", "text"),
    "title as a number": ("title = 5\n" + TOML, "title", "text"),
    "missing source file": (
        edited("[candidates]", SOURCE.format("file", "none.csv")), "candidates.source", "no such file"),
    "no source": (
        edited("[candidates]", '[candidates]\ngenerator = "file"'), "candidates.source", "needs a CSV"),
    "a source nobody reads": (
        edited("[candidates]", SOURCE.format("sphere", "pool.csv")), "candidates.source", "takes none"),
    "source as a number": (
        edited("[candidates]", '[candidates]\ngenerator = "file"\nsource = 3'), "candidates.source",
        "path of a file"),
    "unimportable function": (
        edited("[candidates]", SOURCE.format("python", "nowhere:f")), "candidates.source",
        "module:function"),
    "missing function": (
        edited("[candidates]", SOURCE.format("python", "math:nothing")), "candidates.source",
        "module:function"),
    "no function": (
        edited("[candidates]", SOURCE.format("python", "math:pi")), "candidates.source",
        "not a function"),
    "a function that raises": (
        edited("[candidates]", SOURCE.format("python", "math:sqrt")), "candidates.source",
        "it raised TypeError"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_names_file_key_and_remedy(tmp_path: Path, kind: str) -> None:
    text, key, remedy = BAD[kind]
    path = study_file(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        files.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: {key}") or message.startswith(f"{path} = '{key}'"), message
    assert remedy in message
    assert "\n" not in message
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.toml"]


BAD_SOURCES = {
    "columns.csv": ("a,b\n1,2\n", "it has 2 columns"),
    "words.csv": ("a,b,c\n1,2,x\n", "not numbers"),
    "gaps.csv": ("a,b,c\n1,2,3\n4,5,\n", "not finite"),
    "heading.csv": ("1,2,3\n4,5,6\n", "must be a heading"),
    "empty.csv": ("", "cannot be read"),
    "norows.csv": ("a,b,c\n", "no rows"),
    "few.csv": ("a,b,c\n1,2,3\n", "holds only 1 rows"),
    "broken.parquet": ("PAR1 no", "cannot be read"),
    "empty.npy": ("", "cannot be read"),
    "pool.xlsx": ("", "must end in"),
}


@pytest.mark.parametrize("name", BAD_SOURCES)
def test_a_bad_source_names_itself(tmp_path: Path, name: str) -> None:
    content, remedy = BAD_SOURCES[name]
    (tmp_path / name).write_text(content)
    path = study_file(tmp_path, edited("[candidates]", SOURCE.format("file", name)))
    with pytest.raises(InvalidInput) as caught:
        files.load(path)
    message = str(caught.value)
    assert remedy in message
    assert str(path) in message
    assert name in message or "candidates.count" in message
    assert "\n" not in message


def test_a_vector_is_no_pool(tmp_path: Path) -> None:
    np.save(tmp_path / "line.npy", np.ones(3))
    path = study_file(tmp_path, edited("[candidates]", SOURCE.format("file", "line.npy")))
    with pytest.raises(InvalidInput, match="it has 1 axes"):
        files.load(path)


@pytest.mark.parametrize("answer", ["None", "[[1.0]]", "'text'", "float('nan') * rng.random((1, 5, 3))"])
def test_a_function_that_answers_something_else(tmp_path: Path, answer: str) -> None:
    module = f"module_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{module}.py").write_text(f"def f(rng, rounds, count, dim):\n    return {answer}\n")
    path = study_file(tmp_path, edited("[candidates]", SOURCE.format("python", f"{module}:f")))
    with pytest.raises(InvalidInput, match=r"candidates\.source = .*: (must return finite|called as)"):
        files.load(path)


def test_a_missing_file_names_the_shipped_studies(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no shipped study \(.*paper.*\)"):
        files.load(tmp_path / "none.toml")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read"):
        files.load(tmp_path / "study.toml")


def test_a_list_is_a_sweep_and_every_combination_is_a_setting(tmp_path: Path) -> None:
    text = edited("sigma = 0.2", "sigma = [0.1, 0.2]").replace("alpha", "alpha")
    study = files.load(study_file(tmp_path, text))
    assert study.swept == ("sigma", "history", "reserve")
    assert len(set(study.settings)) == 2 * 2 * 2
    assert {s.theta for s in study.settings} == {(1.0, 0.5, 0.2)}


def test_vectors_can_be_swept(tmp_path: Path) -> None:
    text = edited("[1.0, 0.5, 0.2]", "[[1.0, 0.5, 0.2], [1, 0, 0]]")
    study = files.load(study_file(tmp_path, text))
    assert {s.theta for s in study.settings} == {(1.0, 0.5, 0.2), (1.0, 0.0, 0.0)}


def test_a_method_can_have_its_own_confidence(tmp_path: Path) -> None:
    text = edited('"contrast"', '{policy = "refresh", label = "mine", confidence = "mixture"}')
    method = files.load(study_file(tmp_path, text)).methods[0]
    assert (method.label, method.policy, method.confidence) == ("mine", "refresh", "mixture")


def test_the_papers_protocol() -> None:
    """Section 4.1, number by number."""
    study = files.load("paper")
    assert (study.episodes, len(study.settings), len(study.methods)) == (256, 36, 6)
    grid = {(s.history, s.rho, s.sigma, s.reserve) for s in study.settings}
    assert grid == {
        (history, rho, sigma, reserve)
        for history in ("diverse", "baseline")
        for rho in (0.15, 0.4, 0.8)
        for sigma in (0.1, 0.3)
        for reserve in (0.0, 0.5, 2.0)
    }
    fixed = {
        (s.alpha, s.delta, s.ridge, s.norm_bound, s.rounds, s.count, s.history_size, s.noise,
         s.generator, {m.confidence_in(s) for m in study.methods}.pop(), s.theta, s.baseline)
        for s in study.settings
    }  # fmt: skip
    assert fixed == {
        (0.05, 0.05, 0.1, 1.5, 200, 32, 20, "gaussian", "sphere", "self-normalized",
         (1.0, 0.6, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0, 0.0))
    }  # fmt: skip


@pytest.mark.parametrize("name", files.shipped())
def test_every_shipped_study_runs(name: str) -> None:
    study = files.load(name)
    short = tuple(replace(setting, rounds=min(setting.rounds, 400)) for setting in study.settings)
    metrics = simulate(study.with_(settings=short), 0, 1).metrics
    plays = [[study.plays(s, m.label) for m in study.methods] for s in range(len(short))]
    assert np.array_equal(np.isfinite(metrics[0, ..., :3]).all(axis=-1), plays)
    assert np.array_equal(np.isnan(metrics[0]).all(axis=-1), ~np.array(plays))


@pytest.mark.parametrize(("rho", "forced"), [(0.15, 3), (0.4, 8), (0.8, 17)])
def test_the_forced_phase_of_the_theory_sheet(rho: float, forced: int) -> None:
    setting = Setting(history="baseline", rho=rho, sigma=0.1)
    assert setting.forced_rounds == forced
    late = Method("late", "linucb", after_forced_phase=True)
    chunk = simulate(Study("late", "late", (late,), (setting,), (), 2, 1), 0, 1)
    expected = np.minimum(np.arange(1, 201), forced)  # the baseline first, then never again
    assert np.array_equal(chunk.fallback_sum[0, 0], expected)
    gated = Study("gated", "gated", (Method("r", "reserve-c4b+"),), (setting,), (), 2, 1)
    assert simulate(gated, 0, 1).fallback_sum[0, 0, -1] >= forced  # no gate can do with fewer


def test_every_field_of_a_setting_has_a_key_in_the_file() -> None:
    reachable = {field for keys in files.SECTIONS.values() for field in keys.values()}
    others = {"world", "methods"}  # a world's name has its own table; methods say where they play
    assert reachable | others == set(Setting.__slots__)


def test_a_policy_by_its_parts(tmp_path: Path) -> None:
    """It runs like a registered one, and other processes need not know its name."""
    parts = '{label = "mine", ledger = "refresh", selection = "propose", score = "mean"}'
    study = files.load(study_file(tmp_path, edited('"contrast"', parts)))
    mine = study.methods[0]
    assert (mine.label, mine.parts.selection, mine.parts.score) == ("mine", "propose", "mean")
    assert Study.from_dict(json.loads(json.dumps(study.to_dict()))) == study
    assert pickle.loads(pickle.dumps(study)) == study
    assert "mine" not in policies.names()
    found = run(study.with_(episodes=2), tmp_path / "out")
    assert set(found.frame["method"].unique()) == {method.label for method in study.methods}
