"""Pictures of a study, as PDF and PNG. Line style and marker tell methods apart without colour."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from c4b.study.plan import Setting
from c4b.study.results import Results
from c4b.study.statistics import student

# (colour, line style, marker); the colours are dark enough to stay apart in grey
_STYLES = [
    ("#7f7f7f", (0, (1, 1)), "o"),
    ("#1f77b4", (0, (5, 2)), "s"),
    ("#d62728", "-", "D"),
    ("#9467bd", (0, (3, 1, 1, 1)), "v"),
    ("#2ca02c", (0, (3, 1, 1, 1, 1, 1)), "^"),
    ("#000000", (0, (1, 3)), "x"),
    ("#8c564b", (0, (7, 1)), "P"),
    ("#e377c2", (0, (2, 2)), "*"),
]


MOST_LINES = 150
"""Settings in one picture; the report's table holds them all."""


def draw(results: Results, folder: Path) -> list[Path]:
    """All figures that the study's own shape allows; returns the PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, figure in _figures(results):
        for kind in ("pdf", "png"):
            # no time stamp: the same results give the same file
            figure.savefig(folder / f"{name}.{kind}", dpi=160, metadata=_plain(kind))
        made.append(folder / f"{name}.png")
    return made


def _plain(kind: str) -> dict[str, str | None]:
    return (
        {"CreationDate": None} if kind == "pdf" else {"Software": f"matplotlib {matplotlib.__version__}"}
    )


def _figures(results: Results) -> Iterable[tuple[str, Figure]]:
    settings = results.study.settings
    chosen = _first(settings, history="diverse", rho=0.15, sigma=0.3, reserve=0.0)
    yield "cumulative_fallback", cumulative_fallback(results, chosen)
    if "reserve" in results.study.swept:
        chosen = _first(settings, history="baseline", rho=0.4, sigma=0.3)
        yield "reserve_sensitivity", reserve_sensitivity(results, chosen)
    yield "reward_ratio", reward_ratio(results)


def _first(settings: tuple[Setting, ...], **wanted: object) -> int:
    """The setting with these values, or else the first."""
    for s, setting in enumerate(settings):
        if all(getattr(setting, field) == value for field, value in wanted.items()):
            return s
    return 0


def _style(number: int) -> dict[str, object]:
    colour, line, marker = _STYLES[number % len(_STYLES)]
    return {"color": colour, "linestyle": line, "marker": marker, "markersize": 4.5, "linewidth": 1.4}


def _new(width: float = 5.2, height: float = 3.4) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def cumulative_fallback(results: Results, setting: int) -> Figure:
    """Share of rounds so far in which the baseline was played, with intervals at some rounds."""
    figure = _new()
    axes = figure.subplots()
    rounds = results.study.settings[setting].rounds
    marks = np.unique(np.linspace(max(1, rounds // 10), rounds, 8).astype(int)) - 1
    rows = results.trajectories.filter(pl.col("setting") == setting)
    for n, method in enumerate(results.study.methods):
        mine = rows.filter(pl.col("method") == method.label)
        share = 100.0 * mine["fallback_share"].to_numpy()
        half = 100.0 * mine["half_width_95"].to_numpy()
        at, style = mine["round"].to_numpy(), _style(n)
        marker = style.pop("marker")
        axes.plot(at, share, **style)  # type: ignore[arg-type] # a dictionary of plain keywords
        axes.errorbar(
            at[marks],
            share[marks],
            yerr=half[marks],
            fmt=str(marker),
            color=str(style["color"]),
            markersize=4.5,
            capsize=2.5,
            label=method.label,
        )
    axes.set(xlabel="deployment round", ylabel="fallback so far (% of rounds)", ylim=(-3, 103))
    axes.set_title(results.describe(setting), fontsize=9)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, ncols=2)
    return figure


def reserve_sensitivity(results: Results, like: int) -> Figure:
    """Reward ratio against reserve, all else as in setting ``like``."""
    figure = _new()
    axes = figure.subplots()
    model = results.study.settings[like]
    others = [f for f in results.study.swept if f != "reserve"]
    same = [
        (setting.reserve, s)
        for s, setting in enumerate(results.study.settings)
        if all(getattr(setting, f) == getattr(model, f) for f in others)
    ]
    reserves = np.array([reserve for reserve, _ in sorted(same)])
    for n, method in enumerate(results.study.methods):
        found = [student(results.values(s, method.label, "reward_ratio")) for _, s in sorted(same)]
        means = np.array([f.mean for f in found])
        half = np.array([f.high - f.mean for f in found])
        axes.errorbar(reserves, means, yerr=half, capsize=2.5, label=method.label, **_style(n))  # type: ignore[arg-type] # a dictionary of plain keywords
    axes.set(xlabel="reserve $R_0$ (reward units)", ylabel="mean reward / baseline mean")
    axes.set_title(", ".join(f"{f}={getattr(model, f)}" for f in others), fontsize=9)
    axes.set_xticks(reserves)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, ncols=2)
    return figure


def reward_ratio(results: Results) -> Figure:
    """Every setting on one line, every method a mark: the whole study at a glance."""
    settings = range(min(len(results.study.settings), MOST_LINES))
    figure = _new(6.4, max(2.4, 0.24 * len(settings) + 1.2))
    axes = figure.subplots()
    for n, method in enumerate(results.study.methods):
        means = [student(results.values(s, method.label, "reward_ratio")).mean for s in settings]
        colour, _, marker = _STYLES[n % len(_STYLES)]
        axes.plot(means, list(settings), marker, color=colour, markersize=5, label=method.label)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(list(settings), [results.describe(s) for s in settings], fontsize=7)
    axes.invert_yaxis()
    if len(settings) < len(results.study.settings):
        axes.set_title(f"the first {MOST_LINES} of {len(results.study.settings)} settings", fontsize=9)
    axes.set_xlabel("mean reward / baseline mean")
    axes.grid(alpha=0.25)
    figure.legend(fontsize=8, ncols=min(3, len(results.study.methods)), loc="outside lower center")
    return figure
