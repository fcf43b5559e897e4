"""Figures: a policy looks the same everywhere, nothing hides anything, labels are short."""

from dataclasses import replace

import matplotlib.lines
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.patches import Rectangle

from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.report import figures
from c4b.study.report.figure_style import short_name, styles
from c4b.study.results.intervals import student
from c4b.study.results.results import Results
from c4b.study.spec import study_file as files
from c4b.study.spec.plan import Method
from support.small_studies import small_study

PAPER, BEYOND = (files.load(name).methods for name in ("paper", "beyond"))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(
        small_study(("refresh", "contrast", "linucb"), episodes=6), tmp_path_factory.mktemp("small")
    )


def test_a_policy_looks_the_same_in_every_study() -> None:
    every = styles([*PAPER, *(m for m in BEYOND if m.label not in {p.label for p in PAPER})])
    own = [m.label for m in (*PAPER, *BEYOND) if m.label in (m.policy, "linucb, late")]
    assert {"refresh", "linucb", "checkpoints", "reserve-c4b+", "linucb, late"} <= set(own)
    for methods in (PAPER, BEYOND, BEYOND[::-1], (*PAPER[3:], *BEYOND[-2:])):
        looks = styles(methods)
        assert all(looks[label] == every[label] for label in looks if label in own)


def test_all_methods_of_a_study_differ_without_colour() -> None:
    some = [Method(f"mine {n}", "refresh") for n in range(5)]
    for methods in (PAPER, BEYOND, (*PAPER, *BEYOND[-2:], *some)):
        looks = styles(methods).values()
        assert len({line for _, line, _ in looks}) == len({mark for *_, mark in looks}) == len(methods)


def test_a_borrowed_name_does_not_borrow_the_look() -> None:
    looks = styles([Method("refresh", "contrast"), Method("contrast", "contrast")])
    assert looks["refresh"] != styles(PAPER)["refresh"]
    assert looks["contrast"] == styles(PAPER)["contrast"]


def bars_of(axes: Axes) -> list[ErrorbarContainer]:
    return [c for c in axes.containers if isinstance(c, ErrorbarContainer)]


def test_reward_ratio_has_intervals_and_hides_no_mark(found: Results) -> None:
    (axes,) = figures.reward_ratio(found).axes
    bars = bars_of(axes)
    assert [bar.get_label() for bar in bars] == ["refresh", "contrast", "linucb"]
    places = []
    for bar in bars:
        mark, _, (lines,) = bar.lines
        assert mark is not None
        places.append(np.asarray(mark.get_xdata()))
        for s, segment in enumerate(lines.get_segments()):
            known = student(found.values(s, str(bar.get_label()), Metric.REWARD_RATIO))
            assert segment[:, 1] == pytest.approx([known.low, known.high])
    for s, column in enumerate(np.transpose(places)):
        assert len(set(column)) == len(bars)
        assert np.all(np.abs(column - s) < 0.45)  # in its own band, off the frame
    assert [label.get_text() for label in axes.get_xticklabels()] == ["diverse", "baseline"]


def test_reward_ratio_is_small_multiples_on_one_scale(paper: Results) -> None:
    panels = figures.reward_ratio(paper).axes
    assert len(panels) == 12  # 2 histories, 3 radii, 2 noises; each with 3 reserves
    assert len({panel.get_ylim() for panel in panels}) == 1
    assert panels[0].get_title() == r"diverse, $\rho$ 0.15, $\sigma$ 0.1"
    assert [label.get_text() for label in panels[0].get_xticklabels()] == ["0", "0.5", "2"]
    shown = sum(len(bars_of(panel)) for panel in panels)
    assert shown == 12 * len(PAPER)


def test_the_price_of_safety_is_on_one_scale(found: Results) -> None:
    refresh, contrast = figures.price_of_safety(found).axes
    assert refresh.get_xlim() == contrast.get_xlim()
    for panel, label in ((refresh, "refresh"), (contrast, "contrast")):
        assert panel.get_title().startswith(f"{label}\nmean ")
        lengths = [bar.get_width() for bar in panel.patches if isinstance(bar, Rectangle)]
        known = [
            found.values(s, "linucb", Metric.REWARD_RATIO) - found.values(s, label, Metric.REWARD_RATIO)
            for s in range(2)
        ]
        assert lengths == pytest.approx([float(each.mean()) for each in known])


def test_the_legend_shows_line_and_marker(found: Results) -> None:
    (axes,) = figures.cumulative_fallback(found, 0).axes
    legend = axes.get_legend()
    assert legend is not None
    shown = [h for h in legend.legend_handles if isinstance(h, matplotlib.lines.Line2D)]
    assert [h.get_marker() for h in shown] == ["D", "s", "x"]
    assert all(h.get_linestyle() != "None" for h in shown)


def test_labels_are_short(paper: Results, found: Results) -> None:
    assert short_name(paper, 1) == r"diverse, $\rho$ 0.15, $\sigma$ 0.1, $R_0$ 0.5"
    assert short_name(paper, 1, without="reserve") == r"diverse, $\rho$ 0.15, $\sigma$ 0.1"
    assert short_name(found, 1) == "baseline"
    settings = tuple(replace(s, source="$a$.csv", generator="file") for s in found.study.settings)
    study = found.study.with_(settings=(found.study.settings[0], settings[1]), swept=("source", "rho"))
    assert short_name(replace(found, study=study), 1) == r"source \$a\$.csv"  # rho is one and the same
