"""Studies that list worlds by name, and worlds that are drawn from the seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from c4b.errors import InvalidInput
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.report.write_report import write_report
from c4b.study.results import world_summary
from c4b.study.results.intervals import Estimate
from c4b.study.results.safety_summary import safety
from c4b.study.spec import study_file
from c4b.study.spec.drawn_worlds import MOST_WORK, drawn_world

NAMED = """
methods = ["refresh"]
[candidates]
rho = 0.4
[[worlds]]
name = "quiet"
truth = {sigma = 0.1}
[[worlds]]
name = "loud"
truth = {sigma = [0.5, 1.0]}
candidates = {rho = 0.8}
"""


def test_a_world_takes_the_files_values_and_its_own(tmp_path: Path) -> None:
    study = study_file.parse(NAMED, "named.toml", tmp_path)
    assert study.swept == ("world",)
    told_apart = [(s.world, s.rho, s.sigma) for s in study.settings]
    assert told_apart == [
        ("quiet", 0.4, 0.1), ("loud, sigma 0.5", 0.8, 0.5), ("loud, sigma 1.0", 0.8, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "loud"', 'name = "quiet"', "appears twice"),
        ('name = "loud"', "", "must be a text"),
        ("truth = {sigma = 0.1}", "truths = {sigma = 0.1}", "unknown key"),
        ("truth = {sigma = 0.1}", "truth = {sigma = -1.0}", "truth.sigma"),
        ('methods = ["refresh"]', 'methods = ["refresh"]\ndrawn_worlds = -1', "at least 0"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        study_file.parse(NAMED.replace(old, new), "named.toml", tmp_path)


AT_HOME = """
methods = ["linucb", "refresh", {policy = "cucb", worlds = ["arms"]}]
episodes = 2
drawn_worlds = 1
[deployment]
rounds = 30
[[worlds]]
name = "arms"
candidates = {generator = "one-hot", count = 2}
truth = {theta = [0.5, 0.6, 0.4], baseline = [1.0, 0.0, 0.0]}
history = {kind = "baseline"}
[[worlds]]
name = "sphere"
"""


def test_a_method_plays_only_in_the_worlds_that_it_names(tmp_path: Path) -> None:
    study = study_file.parse(AT_HOME, "home.toml", tmp_path)
    study = study.with_(settings=tuple(replace(s, rounds=30) for s in study.settings))
    results = run(study, tmp_path / "home", jobs=1)
    assert [results.players(s) for s in range(3)] == [
        ["linucb", "refresh", "cucb"], ["linucb", "refresh"], ["linucb", "refresh"],
    ]  # fmt: skip
    assert results.settings_of("cucb") == [0]
    assert np.isnan(results.values(1, "cucb", Metric.REWARD_RATIO)).all()
    row = next(row for row in safety(results) if row.method == "cucb")
    assert (row.episodes, row.violations) == (2, 0)
    page = write_report(results).read_text(encoding="utf-8")
    assert "nan" not in page.lower().split("base64")[0]
    again = run(study.with_(episodes=3), tmp_path / "home", jobs=1)  # continues the finished rows
    assert again.run["episodes_resumed"] == 2
    assert again.trajectories.height == 30 * (3 + 2 + 2)


@pytest.mark.parametrize("worlds", ['["elsewhere"]', "[]", '"arms"'])
def test_a_method_names_worlds_that_there_are(tmp_path: Path, worlds: str) -> None:
    text = AT_HOME.replace('worlds = ["arms"]', f"worlds = {worlds}")
    with pytest.raises(InvalidInput, match="names of worlds: arms, sphere"):
        study_file.parse(text, "home.toml", tmp_path)


def test_a_seed_draws_its_own_worlds() -> None:
    first, again, other = (study_file.load("worlds", seed) for seed in (5, 5, 6))
    assert first.settings == again.settings
    drawn = [s for s in first.settings if s.world.startswith("drawn")]
    assert len(drawn) == 64 >= len(first.settings) / 2
    assert not {s.theta for s in drawn} & {s.theta for s in other.settings if s.world.startswith("drawn")}
    assert len({s.world for s in first.settings}) == len(first.settings)
    assert first.seed == 5


def test_drawn_worlds_cover_what_they_promise() -> None:
    drawn = [drawn_world(seed, number) for seed in range(4) for number in range(1, 65)]
    assert {s.dim for s in drawn} == {2, 3, 5, 10, 20, 50}
    assert min(s.count for s in drawn) == 2
    assert max(s.count for s in drawn) > 300
    assert max(s.rounds for s in drawn) > 5000
    for s in drawn:
        work = s.dim * (s.count + s.dim)
        assert s.rounds * work <= max(MOST_WORK * 1.01, 200 * work)
    assert {s.generator for s in drawn} == {"sphere", "gaussian", "one-hot"}
    assert {s.noise for s in drawn} >= {"heteroscedastic", "skewed", "uniform"}
    assert any(s.correlation > 0.0 for s in drawn)
    assert {s.listing for s in drawn if s.generator == "one-hot"} == {"shuffled"}
    assert any(s.baseline_spread > 0.0 for s in drawn)


def test_a_small_sample_runs_and_is_reported(tmp_path: Path) -> None:
    """Rounds are cut to 60: every world is played, reported and free of violations."""
    study = study_file.load("worlds", 3)
    chosen = [s for s in study.settings if s.count * s.dim <= 400][::3]
    settings = tuple(replace(s, rounds=min(s.rounds, 60)) for s in chosen)
    measured = run(replace(study, settings=settings, episodes=3), tmp_path)
    page = write_report(measured)
    rows = world_summary.world_rows(measured)
    assert {row.world for row in rows} == {s.world for s in chosen}
    assert [row.gain_late.mean for row in rows if row.verdict == "good"] == sorted(
        row.gain_late.mean for row in rows if row.verdict == "good"
    )
    assert sum(row.violations for row in rows) == 0
    assert "0 violations" in world_summary.sentence(measured)
    assert "World by world" in page.read_text()
    assert (tmp_path / "figures" / "worlds.png").stat().st_size > 10_000
    assert (tmp_path / "tables" / "worlds.tex").read_text().count("\\\\") == len(rows) + 1


def estimate(mean: float, half: float = 0.001) -> Estimate:
    return Estimate(mean, half / 2.0, mean - half, mean + half, 8)


@pytest.mark.parametrize(
    ("late", "gate", "refresh", "covered", "verdict"),
    [
        (-0.1, -0.09, 0.2, 1, "VIOLATED"),
        (-0.1, -0.09, -0.2, 0, "below refresh"),
        (-0.1, -0.09, 0.2, 0, "price: the gate"),
        (-0.1, -0.01, 0.2, 0, "price: the choice"),
        (-0.009, -0.009, 0.2, 0, "good"),
    ],
)
def test_the_verdict_on_a_world(
    late: float, gate: float, refresh: float, covered: int, verdict: str
) -> None:
    row = world_summary.WorldRow(
        "w", estimate(1.0), 0.5, estimate(late), gate, estimate(refresh), 2, covered
    )
    assert row.verdict == verdict
    assert world_summary.cells(row)[1] == verdict
    assert len(world_summary.cells(row)) == len(world_summary.HEADING)
