"""What the documentation's pictures share: size, fonts, colours and the folder that holds them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BENCHMARKS = Path(__file__).parents[1]
IMAGES = BENCHMARKS.parent / "docs" / "images"
sys.path.insert(0, str(BENCHMARKS))  # for the worlds of ``realdata``

CERTIFIED, UNSAFE, KNOWN, PLAIN = "#0072B2", "#D55E00", "#009E73", "#777777"
"""Colours that stay apart for colour-blind readers: our policy, no promise, an oracle, the incumbent."""

mpl.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})


def new(columns: int = 1, width: float = 8.5, height: float = 4.4, **given: Any) -> tuple[Figure, Any]:
    """A figure with one or several axes beside each other."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns, **given)


def save(figure: Figure, name: str) -> None:
    """Write docs/images/NAME.png, without a time stamp."""
    path = IMAGES / f"{name}.png"
    figure.savefig(path, dpi=130, metadata={"Software": None})
    print(path.relative_to(BENCHMARKS.parent))


def thousands(axes: Axes) -> None:
    """Ticks such as 20,000 on the horizontal axis."""
    axes.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))
