"""Draws what ``benchmarks/field.py`` found; the picture in docs/field.md is one of these.

    python benchmarks/field_figure.py results/field/field.json docs/images/field.png

Above: what each system earns in four worlds of the paper, without any reserve, and what it loses where
nothing is better than the baseline. Below: the worlds that some systems are made for, this package's
policies beside them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

TOLD = "#D55E00"
OWN, OTHERS, NONE = "#0072B2", "#009E73", "#999999"
COLOURS = {
    "refresh": OWN,
    "reserve-c4b+": OWN,
    "clucb-unknown": OTHERS,
    "maximin": OTHERS,
    "cucb-unknown": OTHERS,
    "off-policy gate": OTHERS,
    "linucb": NONE,
}
MEANING = {
    OWN: "the paper and this package",
    OTHERS: "cited, is told nothing",
    TOLD: "cited, is told the baseline's mean",
    NONE: "no gate, promises nothing",
}
ABOVE = {
    "diverse .15/.3": "much known,\ncandidates near",
    "diverse .8/.3": "much known,\ncandidates far",
    "baseline .15/.3": "baseline known,\ncandidates near",
    "baseline .8/.3": "baseline known,\ncandidates far",
    "trap: worse": "trap: all\ncandidates worth 93 %",
    "trap: worse arms": "trap: all\narms worth 93 %",
}
BELOW = {
    "arms": "arms,\n5,000 rounds",
    "long arms": "arms,\n100,000 rounds",
    "slates": "slates,\nlearning from items",
    "regression": "regression,\n10,000 rounds",
    "log": "a log,\n4,000 rows",
}
SHOWN_AT_HOME = {
    "arms": ("linucb", "refresh", "reserve-c4b+", "clucb2", "cucb", "cucb-unknown", "budget-first-arms"),
    "regression": (
        "linucb", "refresh", "reserve-c4b+", "clucb2", "c-squarecb", "c-fastcb",
    ),
    "log": ("linucb", "refresh", "reserve-c4b+", "clucb2", "off-policy gate"),
}  # fmt: skip
"""Systems of a home's panel; all others are in the table."""


def draw(result: dict[str, Any], file: Path) -> None:
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    worlds = result["worlds"]
    figure = plt.figure(figsize=(13.0, 7.0), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[3.9, 2.7])
    order = sorted(
        worlds["diverse .15/.3"], key=lambda system: worlds["baseline .8/.3"][system]["ratio"][0]
    )
    panels = upper.subplots(1, len(ABOVE), sharey=True)
    for panel, (world, title) in zip(panels, ABOVE.items(), strict=True):
        _bars(panel, worlds[world], order, title, is_trap=world.startswith("trap"))
    panels[0].set_yticks(range(len(order)), order, fontsize=9)
    panels[0].set_ylim(-0.6, len(order) - 0.1)
    for panel, (world, title) in zip(lower.subplots(1, len(BELOW)), BELOW.items(), strict=True):
        shown = [system for system in SHOWN_AT_HOME.get(world, worlds[world]) if system in worlds[world]]
        shown.sort(key=lambda system: worlds[world][system]["ratio"][0])
        _bars(panel, worlds[world], shown, title, is_trap=False)
        panel.set_yticks(range(len(shown)), shown, fontsize=8.5)
        panel.set_ylim(-0.6, max(len(shown), 4) - 0.4)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in MEANING]
    figure.legend(
        handles, MEANING.values(), loc="outside lower center", ncols=4, frameon=False, fontsize=9
    )
    figure.suptitle("Reward above that of always playing the baseline, in percent", fontsize=10.5)
    figure.savefig(file, dpi=130, metadata={"Software": None})
    plt.close(figure)


def _bars(panel: Axes, found: dict[str, Any], systems: list[str], title: str, is_trap: bool) -> None:
    """A bar for each system that plays there, in this order from below."""
    for at, system in enumerate(systems):
        if system not in found:
            continue
        value = 100.0 * (found[system]["ratio"][0] - 1.0)
        panel.barh(at, value, color=COLOURS.get(system, TOLD), height=0.72)
        side = 1.0 if value >= -0.05 else -1.0
        panel.annotate(
            f"{value:+.1f}" if abs(value) >= 0.05 else "0",
            (value, at),
            (3.0 * side, 0.0),
            textcoords="offset points",
            ha="left" if side > 0.0 else "right",
            va="center",
            fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )
    panel.axvline(0.0, color="black", linewidth=0.8)
    low, high = panel.get_xlim()
    panel.set_xlim(*((-8.5, 1.0) if is_trap else (min(low, 0.0), 1.35 * high)))
    if is_trap:
        panel.axvline(-5.0, color="black", linewidth=0.9, linestyle=":")
        panel.text(-5.2, 0, "may lose\n5 %", ha="right", va="center", fontsize=8)
    panel.set_title(title, fontsize=9)
    panel.tick_params(axis="y", length=0)


def main() -> None:
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
