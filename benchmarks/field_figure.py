"""Draws docs/images/field.png from the results of the study ``comparators``.

    c4b study run comparators
    python benchmarks/field_figure.py results/comparators

Left: what each system earns above the baseline without any reserve, in four worlds of the paper. Right:
what it loses where nothing is better than the baseline. Every system may lose alpha = 5 %.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.results import Results, read
from c4b.study.spec.setting import Setting

TOLD = "#D55E00"
OWN, OTHERS, NONE = "#0072B2", "#009E73", "#999999"
COLOURS = {
    "refresh": OWN,
    "reserve-c4b+": OWN,
    "clucb-unknown": OTHERS,
    "maximin": OTHERS,
    "linucb": NONE,
}
MEANING = {
    OWN: "the paper and this package",
    OTHERS: "cited, is told nothing",
    TOLD: "cited, is told the baseline's mean",
    NONE: "no gate, promises nothing",
}
EARNS = {
    "much known, candidates near": {"history": "diverse", "rho": 0.15, "sigma": 0.3},
    "much known, candidates far": {"history": "diverse", "rho": 0.8, "sigma": 0.3},
    "baseline known, candidates near": {"history": "baseline", "rho": 0.15, "sigma": 0.3},
    "baseline known, candidates far": {"history": "baseline", "rho": 0.8, "sigma": 0.3},
}
TRAPS = {
    "all candidates worth 93 %": "trap: all candidates worth .93",
    "all arms worth 93 %": "trap: all arms worth .93",
}


def setting_of(settings: tuple[Setting, ...], wanted: dict[str, object]) -> int:
    return next(
        n
        for n, s in enumerate(settings)
        if all(getattr(s, key) == value for key, value in wanted.items())
    )


def draw(results: Results, file: Path) -> None:
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    settings = results.study.settings
    floor = {"baseline_floor": 1.0}  # known to those who ask for it
    panels = {name: setting_of(settings, {**floor, **wanted}) for name, wanted in EARNS.items()}
    panels |= {name: setting_of(settings, {"world": world}) for name, world in TRAPS.items()}
    labels = [m.label for m in results.study.methods]
    first = panels["baseline known, candidates far"]
    labels.sort(key=lambda label: float(np.mean(results.values(first, label, Metric.REWARD_RATIO))))
    figure, axes = plt.subplots(1, len(panels), figsize=(13.0, 3.9), sharey=True, layout="constrained")
    for panel, (title, setting) in zip(axes, panels.items(), strict=True):
        for at, label in enumerate(labels):
            values = 100.0 * (np.array(results.values(setting, label, Metric.REWARD_RATIO)) - 1.0)
            panel.barh(at, values.mean(), color=COLOURS.get(label, TOLD), height=0.72)
            side = 1.0 if values.mean() >= -0.05 else -1.0
            panel.annotate(
                f"{values.mean():+.1f}" if abs(values.mean()) >= 0.05 else "0",
                (values.mean(), at),
                (3.0 * side, 0.0),
                textcoords="offset points",
                ha="left" if side > 0.0 else "right",
                va="center",
                fontsize=8,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            )
        panel.axvline(0.0, color="black", linewidth=0.8)
        low, high = panel.get_xlim()
        trap = title in TRAPS
        panel.set_xlim(*((-8.5, 1.0) if trap else (min(low, 0.0), 1.3 * high)))
        if trap:
            panel.axvline(-5.0, color="black", linewidth=0.9, linestyle=":")
            panel.text(-5.2, 0, "may lose\n5 %", ha="right", va="center", fontsize=8)
        panel.set_title("trap:\n" + title if trap else title.replace(", ", ",\n"), fontsize=9)
        panel.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(labels)), labels, fontsize=9)
    axes[0].set_ylim(-0.6, len(labels) - 0.1)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in MEANING]
    figure.legend(
        handles, MEANING.values(), loc="outside lower center", ncols=4, frameon=False, fontsize=9
    )
    figure.suptitle("Reward above that of always playing the baseline, in percent", fontsize=10.5)
    figure.savefig(file, dpi=130, metadata={"Software": None})


def main() -> None:
    draw(read(sys.argv[1]), Path(__file__).parents[1] / "docs" / "images" / "field.png")


if __name__ == "__main__":
    main()
