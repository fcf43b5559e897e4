"""The comparison with the paper: which numbers, and what z means."""

import json
import math

import pytest

from c4b.study.results import published_numbers as published
from c4b.study.results.intervals import paired, student
from c4b.study.results.published_numbers import Comparison, _scored, to_json
from c4b.study.results.results import Results


def test_exactly_the_87_published_numbers(paper: Results) -> None:
    names = [c.name for c in published.compare(paper)]
    assert len(names) == len(set(names)) == 87
    kinds = [name.split()[0] for name in names]
    assert [kinds.count(kind) for kind in ("macro", "central", "grid")] == [15, 24, 48]


def test_published_numbers_are_the_papers() -> None:
    """A few by hand from central.tex, zero_reserve.tex and results_macros.tex."""
    printed = published.published()
    assert printed["central"]["diverse"]["refresh"] == [1.0606, 0.5]
    assert printed["central"]["baseline"]["revalue-f"] == [1.0011, 80.0]
    assert printed["macros"]["LinBaselineViolations"] == 16.4
    assert printed["zero_reserve"]["columns"] == [
        "rho",
        "sigma",
        "contrast",
        "refresh",
        "revalue-f",
        "linucb",
    ]
    assert printed["zero_reserve"]["baseline"][-1] == [0.8, 0.3, 1.003, 1.198, 1.065, 1.350]


@pytest.mark.parametrize(
    ("measured", "se", "digits", "episodes", "z"),
    [
        # half a unit of the last digit is forgiven: (0.0305 - 0.0005) / (0.01 sqrt 2)
        (1.0305, 0.01, 3, 256, 0.03 / (0.01 * math.sqrt(2.0))),
        (0.9695, 0.01, 3, 256, -0.03 / (0.01 * math.sqrt(2.0))),
        # at 64 episodes our se is twice the paper's: sqrt(1 + 1/4)
        (1.0305, 0.01, 3, 64, 0.03 / (0.01 * math.sqrt(1.25))),
        # inside the rounding: nothing to explain, whatever the spread
        (1.0005, 1e-9, 3, 256, 0.0),
        (1.04, 0.0, 1, 256, 0.0),
        (1.2, 0.0, 1, 256, math.inf),
        (0.8, 0.0, 1, 256, -math.inf),
    ],
)
def test_z_by_hand(measured: float, se: float, digits: int, episodes: int, z: float) -> None:
    found = _scored("x", 1.0, measured, se, digits, episodes)
    assert found.z == pytest.approx(z, rel=1e-9)
    assert (found.published, found.measured, found.se) == (1.0, measured, se)


@pytest.mark.parametrize(
    ("start", "digits"),
    [("grid", 3), ("central diverse contrast reward", 4), ("central diverse contrast fallback", 1),
     ("macro ContrastGain", 4), ("macro RefreshVsRevalueLow", 4), ("macro BaselineRefreshReward", 4),
     ("macro SepFallback", 1), ("macro LinBaselineViolations", 1)],
)  # fmt: skip
def test_numbers_are_scored_with_the_digits_they_are_printed_with(
    paper: Results, start: str, digits: int
) -> None:
    """Undo the score: |gap| - |z| spread is the rounding that was forgiven."""
    checked = 0
    for c in published.compare(paper):
        if c.name.startswith(start) and c.z != 0.0:
            forgiven = abs(c.measured - c.published) - abs(c.z) * c.se * math.sqrt(1.25)
            assert forgiven == pytest.approx(0.5 * 10.0**-digits, rel=1e-6)
            checked += 1
    assert checked


def test_macros_are_recomputed_from_the_rows(paper: Results) -> None:
    found = published.macros(paper)
    diverse = paper.find(history="diverse", rho=0.15, sigma=0.3, reserve=0.0)
    baseline = paper.find(history="baseline", rho=0.15, sigma=0.3, reserve=0.0)
    rows = paper.frame
    of = {
        name: rows.filter((rows["setting"] == diverse) & (rows["method"] == name))
        for name in ("contrast", "separate")
    }
    gain = paired(of["contrast"]["reward_ratio"].to_numpy(), of["separate"]["reward_ratio"].to_numpy())
    assert [found[f"ContrastGain{end}"][0] for end in ("", "Low", "High")] == [
        gain.mean, gain.low, gain.high,
    ]  # fmt: skip
    violated = rows.filter((rows["setting"] == baseline) & (rows["method"] == "linucb"))["violation"]
    assert found["LinBaselineViolations"][0] == pytest.approx(100.0 * violated.mean())
    fallback = student(100.0 * of["separate"]["fallback"].to_numpy())
    assert found["SepFallback"] == (fallback.mean, fallback.se)


def test_comparison_json(paper: Results) -> None:
    comparison = json.loads((paper.folder / "comparison.json").read_text(), parse_constant=pytest.fail)
    assert set(comparison) == {"numbers", "max_abs_z", "within_3", "count"}
    assert all(set(n) == {"name", "published", "measured", "se", "z"} for n in comparison["numbers"])
    scores = [abs(n["z"]) for n in comparison["numbers"]]
    assert comparison["max_abs_z"] == max(scores)
    assert comparison["within_3"] == sum(score <= 3.0 for score in scores)
    assert comparison["count"] == len(scores) == 87


def test_an_undefined_z_is_still_json() -> None:
    comparison = to_json([Comparison("x", 1.0, 2.0, 0.0, math.inf), Comparison("y", 1.0, 1.0, 0.1, 0.0)])
    assert json.loads(json.dumps(comparison, allow_nan=False))["numbers"][0]["z"] is None
    assert (comparison["max_abs_z"], comparison["within_3"]) == (None, 1)


def test_only_the_papers_study_is_compared(paper: Results) -> None:
    assert published.is_papers_study(paper)
    methods = paper.study.methods
    for changed in (
        paper.study.with_(methods=methods[:-1]),
        paper.study.with_(settings=paper.study.settings[1:]),
        paper.study.with_(methods=(*methods[:-1], type(methods[0])("linucb", "refresh"))),
    ):
        other = Results(paper.folder, changed, paper.run, paper.trajectories)
        assert not published.is_papers_study(other)
