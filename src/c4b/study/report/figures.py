"""Figures of a study, as PDF and PNG. Line style and marker tell methods apart without colour."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c4b.study.engine.episode_metrics import Metric
from c4b.study.report.figure_style import Style, short_name, styles
from c4b.study.results.intervals import student
from c4b.study.results.price_of_safety import LATE, UNGATED, is_priced, prices
from c4b.study.results.results import Results
from c4b.study.results.world_summary import REFRESH, TOLERATED, is_of_worlds, judged, world_rows
from c4b.study.spec.setting import Setting

MOST_PANELS = 24
"""Settings in ``price_of_safety``."""
MOST_LINES = 150
"""Settings in ``reward_ratio``; the report's table holds them all."""
TALLEST = 60.0
"""Height of a figure's axes in inches, at most."""


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw the figures that fit the study; returns the PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, figure in _figures(results):
        for kind in ("pdf", "png"):
            # no time stamp: the same results give the same file
            figure.savefig(folder / f"{name}.{kind}", dpi=160, metadata=_metadata(kind))
        made.append(folder / f"{name}.png")
    return made


def _metadata(kind: str) -> dict[str, str | None]:
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
    if is_of_worlds(results):
        yield "worlds", worlds(results)
    elif is_priced(results):
        yield "price_of_safety", price_of_safety(results)
    yield "reward_ratio", reward_ratio(results)


def _first(settings: tuple[Setting, ...], **wanted: object) -> int:
    """The setting with these values, or else the first."""
    for s, setting in enumerate(settings):
        if all(getattr(setting, field) == value for field, value in wanted.items()):
            return s
    return 0


def _size(marker: str) -> float:
    return 6.5 if marker in "*x" else 4.5  # thin markers must be larger to be seen


def _errorbar(axes: Axes, style: Style, **given: Any) -> None:
    colour, line, marker = style
    drawn: dict[str, Any] = {
        "color": colour,
        "linestyle": line,
        "marker": marker,
        "markersize": _size(marker),
        "linewidth": 1.4,
        "elinewidth": 1.0,
        "capsize": 2.5,
    }
    axes.errorbar(**{**drawn, **given})


def _new_figure(width: float = 5.2, height: float = 3.4) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def cumulative_fallback(results: Results, setting: int) -> Figure:
    """Share of rounds so far in which the baseline was played, with intervals at some rounds."""
    figure = _new_figure()
    axes = figure.subplots()
    rounds = results.study.settings[setting].rounds
    marks = np.unique(np.linspace(max(1, rounds // 10), rounds, 8).astype(int)) - 1
    rows = results.trajectories.filter(pl.col("setting") == setting)
    style_of = styles(results.study.methods)
    for method in results.study.methods:
        mine = rows.filter(pl.col("method") == method.label)
        share = 100.0 * mine["fallback_share"].to_numpy()
        half = 100.0 * mine["half_width_95"].to_numpy()
        played, style = mine["round"].to_numpy(), style_of[method.label]
        axes.plot(played, share, color=style[0], linestyle=style[1], linewidth=1.4)
        _errorbar(axes, style, x=played[marks], y=share[marks], yerr=half[marks], linestyle="none")
        colour, line, marker = style  # for the legend: line and marker in one
        axes.plot(
            [],
            [],
            color=colour,
            linestyle=line,
            marker=marker,
            markersize=_size(marker),
            label=method.label,
        )
    axes.set(xlabel="deployment round", ylabel="fallback so far (% of rounds)", ylim=(-3, 103))
    axes.set_title(short_name(results, setting), fontsize=9)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, ncols=2, handlelength=3.5)
    return figure


def reserve_sensitivity(results: Results, like: int) -> Figure:
    """Reward ratio against reserve, all else as in setting ``like``."""
    figure = _new_figure()
    axes = figure.subplots()
    model = results.study.settings[like]
    others = [f for f in results.study.swept if f != "reserve"]
    same = [
        (setting.reserve, s)
        for s, setting in enumerate(results.study.settings)
        if all(getattr(setting, f) == getattr(model, f) for f in others)
    ]
    reserves = np.array([reserve for reserve, _ in sorted(same)])
    style_of = styles(results.study.methods)
    for method in results.study.methods:
        rewards = [student(results.values(s, method.label, Metric.REWARD_RATIO)) for _, s in sorted(same)]
        means = np.array([r.mean for r in rewards])
        half = np.array([r.high - r.mean for r in rewards])
        _errorbar(axes, style_of[method.label], x=reserves, y=means, yerr=half, label=method.label)
    axes.set(xlabel="reserve $R_0$ (reward units)", ylabel="mean reward / baseline mean")
    axes.set_title(short_name(results, like, without="reserve"), fontsize=9)
    axes.set_xticks(reserves)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, ncols=2, handlelength=3.5)
    return figure


def price_of_safety(results: Results) -> Figure:
    """LinUCB - method, paired, with its interval; each setting is a panel with its own scale."""
    shown = [price for price in prices(results) if price.method != UNGATED]
    labels = [method.label for method in results.study.methods if method.label != UNGATED]
    style_of = styles(results.study.methods)
    count = min(len(results.study.settings), MOST_PANELS)
    last = len({getattr(s, f) for f in results.study.swept[-1:] for s in results.study.settings})
    columns = last if 2 <= last <= 4 else min(3, count)
    height = (0.16 * len(labels) + 0.42) * -(-count // columns) + 0.5
    figure = _new_figure(1.4 + 2.7 * columns, height)
    panels = figure.subplots(-(-count // columns), columns, sharey=True, squeeze=False).ravel()
    for s, axes in enumerate(panels):
        if s >= count:
            axes.set_axis_off()
            continue
        for at, label in enumerate(labels):
            gain = next(p.gain for p in shown if p.setting == s and p.method == label)
            half = gain.high - gain.mean
            _errorbar(axes, style_of[label], x=[-gain.mean], y=[at], xerr=[half], linestyle="none")
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, -0.1 * (high - low)), max(high, 0.1 * (high - low)))
        axes.axvspan(axes.get_xlim()[0], 0.0, color="black", alpha=0.06, linewidth=0)
        axes.axvline(0.0, color="black", linewidth=0.9)
        axes.set_title(short_name(results, s), fontsize=7.5)
        axes.tick_params(labelsize=7)
        axes.set_yticks(range(len(labels)), labels, fontsize=7.5)
        axes.locator_params(axis="x", nbins=5)
        axes.grid(alpha=0.25, axis="x")
    panels[0].set_ylim(len(labels) - 0.4, -0.6)
    figure.supxlabel(f"price of safety: {UNGATED} - method (reward / baseline mean)", fontsize=8.5)
    return figure


def worlds(results: Results) -> Figure:
    """One line a world: the judged method minus each yardstick, paired; left of 0 is worse."""
    rows = world_rows(results)
    figure = _new_figure(9.5, min(0.16 * len(rows) + 1.2, TALLEST))
    for at, (axes, yardstick) in enumerate(
        zip(figure.subplots(1, 2, sharey=True), (LATE, REFRESH), strict=True)
    ):
        gains = [row.gain_late if yardstick == LATE else row.gain_refresh for row in rows]
        worse = [gain.high < 0.0 for gain in gains]
        for below, colour in ((False, "#1b7837"), (True, "#b2182b")):
            lines = [s for s in range(len(rows)) if worse[s] == below]
            axes.errorbar(
                [gains[s].mean for s in lines],
                lines,
                xerr=[gains[s].high - gains[s].mean for s in lines],
                fmt="x" if below else "o",
                markersize=3.5,
                linewidth=0.9,
                color=colour,
            )
        ends = [abs(end) for gain in gains for end in (gain.low, gain.high)]
        widest = max(0.05, 1.1 * max(ends))
        axes.set_xscale("symlog", linthresh=TOLERATED, linscale=0.6)
        axes.axvspan(-widest, 0.0, color="black", alpha=0.06, linewidth=0)
        axes.set_xlim(-widest, widest)
        ticks = [size for size in (0.01, 0.1, 1.0) if size <= widest]
        ticks = [-size for size in reversed(ticks)] + [0.0] + ticks
        axes.set_xticks(ticks, [f"{tick:+g}" if tick else "0" for tick in ticks], fontsize=8)
        axes.axvline(0.0, color="black", linewidth=0.9)
        axes.grid(alpha=0.25, axis="x")
        axes.set_title(
            f"{judged(results)} - {yardstick}: below in {sum(worse)} of {len(rows)}", fontsize=9
        )
        if at == 0:
            axes.set_yticks(range(len(rows)), [row.world for row in rows], fontsize=6.5)
            axes.set_ylim(len(rows) - 0.4, -0.6)
    figure.supxlabel("difference of mean reward / baseline mean, 95 % interval", fontsize=8.5)
    return figure


def reward_ratio(results: Results) -> Figure:
    """Mean reward and its interval: a band for each setting, a mark for each method."""
    settings = range(min(len(results.study.settings), MOST_LINES))
    methods = results.study.methods
    band = 0.085 * len(methods) + 0.06  # inches
    height = min(max(1.2, band * len(settings)), TALLEST)
    figure = _new_figure(6.4, height + 0.8 + 0.18 * -(-len(methods) // 3))
    axes = figure.subplots()
    style_of = styles(methods)
    for n, method in enumerate(methods):
        rewards = [student(results.values(s, method.label, Metric.REWARD_RATIO)) for s in settings]
        shift = 0.84 * ((n + 0.5) / len(methods) - 0.5)  # beside each other, not on top
        _errorbar(
            axes,
            style_of[method.label],
            x=[r.mean for r in rewards],
            y=[s + shift for s in settings],
            xerr=[r.high - r.mean for r in rewards],
            linestyle="none",
            capsize=1.5,
            label=method.label,
        )
    for s in settings[1::2]:
        axes.axhspan(s - 0.5, s + 0.5, color="black", alpha=0.05, linewidth=0)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(list(settings), [short_name(results, s) for s in settings], fontsize=7.5)
    axes.set_ylim(len(settings) - 0.5, -0.5)
    if len(settings) < len(results.study.settings):
        axes.set_title(f"the first {MOST_LINES} of {len(results.study.settings)} settings", fontsize=9)
    axes.set_xlabel("mean reward / baseline mean")
    axes.grid(alpha=0.25, axis="x")
    figure.legend(fontsize=8, ncols=min(3, len(methods)), loc="outside lower center")
    return figure
