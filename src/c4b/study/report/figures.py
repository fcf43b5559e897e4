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
from c4b.study.report.figure_style import (
    Style,
    named,
    sensitivity_setting,
    short_name,
    styles,
    trajectory_setting,
)
from c4b.study.results.intervals import student
from c4b.study.results.price_of_safety import LATE, UNGATED, is_priced, prices
from c4b.study.results.results import Results
from c4b.study.results.world_summary import REFRESH, TOLERATED, is_of_worlds, judged, world_rows

MOST_PANELS = 24
"""Panels in ``reward_ratio``; the report's table holds all settings."""
MOST_LINES = 60
"""Settings in ``price_of_safety``."""
EARNS, COSTS = "#1b7837", "#c2573a"
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
    yield "cumulative_fallback", cumulative_fallback(results, trajectory_setting(results))
    if "reserve" in results.study.swept:
        yield "reserve_sensitivity", reserve_sensitivity(results, sensitivity_setting(results))
    if is_of_worlds(results):
        yield "worlds", worlds(results)
        return
    if is_priced(results):
        yield "price_of_safety", price_of_safety(results)
    yield "reward_ratio", reward_ratio(results)


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
        if not results.study.plays(setting, method.label):
            continue
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
    """LinUCB - method, paired, with its interval: a panel for each method, all on one scale."""
    gains = {(p.method, p.setting): p.gain for p in prices(results)}
    priced = {label for label, _ in gains} - {UNGATED}
    labels = [method.label for method in results.study.methods if method.label in priced]
    settings = sorted({setting for _, setting in gains})[:MOST_LINES]
    columns = min(4, len(labels))
    rows = -(-len(labels) // columns)
    figure = _new_figure(1.6 + 2.1 * columns, rows * (0.19 * len(settings) + 0.62) + 0.3)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[len(labels) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(labels) - columns) : len(labels)]:
        axes.xaxis.set_tick_params(labelbottom=True)  # nothing below says it
    for label, axes in zip(labels, panels, strict=False):
        lines = [at for at, s in enumerate(settings) if (label, s) in gains]
        mine = [gains[label, settings[at]] for at in lines]
        means = np.array([-gain.mean for gain in mine])
        halves = [gain.high - gain.mean for gain in mine]
        colours = [EARNS if mean < 0.0 else COSTS for mean in means]
        axes.barh(lines, means, height=0.68, color=colours)
        axes.errorbar(means, lines, xerr=halves, fmt="none", color="black", elinewidth=0.8)
        axes.axvline(0.0, color="black", linewidth=0.9)
        axes.set_title(f"{label}\nmean {round(means.mean(), 3) + 0.0:+.3f}", fontsize=8.5)
        axes.tick_params(labelsize=7.5)
        axes.locator_params(axis="x", nbins=4)
        axes.grid(alpha=0.25, axis="x")
        axes.set_axisbelow(True)
    panels[0].set_yticks(range(len(settings)), [short_name(results, s) for s in settings], fontsize=7.5)
    panels[0].set_ylim(len(settings) - 0.4, -0.6)
    figure.supxlabel(
        f"price of safety: {UNGATED} - method (reward / baseline mean); left of 0 the method earns more",
        fontsize=8.5,
    )
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
    """Mean reward and its interval: a panel for all that differ in the last swept field only."""
    groups = _groups(results)
    shown = groups[:MOST_PANELS]
    firsts = {getattr(s, f) for f in results.study.swept[:1] for s in results.study.settings}
    columns = len(shown) // max(1, len(firsts))
    columns = columns if 2 <= columns <= 6 and columns * len(firsts) == len(shown) else min(4, len(shown))
    rows = -(-len(shown) // columns)
    width = max(1.75, 0.1 * len(results.study.methods) * max(map(len, shown)))
    figure = _new_figure(0.8 + min(width, 10.0) * columns, 2.0 * rows + 1.0)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    last = results.study.swept[-1] if results.study.swept else "history"
    for group, axes in zip(shown, panels, strict=False):
        _reward_panel(results, group, axes)
        values = [getattr(results.study.settings[s], last) for s in group]
        axes.set_xticks(range(len(group)), [f"{v:g}" if isinstance(v, float) else str(v) for v in values])
        axes.tick_params(labelsize=7.5)
        axes.set_title(short_name(results, group[0], without=last) if len(groups) > 1 else "", fontsize=8)
        axes.grid(alpha=0.25, axis="y")
    figure.supylabel("mean reward / baseline mean", fontsize=8.5)
    figure.supxlabel(named(last), fontsize=8.5)
    if len(shown) < len(groups):
        figure.suptitle(f"the first {len(shown)} of {len(groups)} panels", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    fitting = max(2, int(figure.get_figwidth() / (0.55 + 0.075 * max(map(len, labels)))))
    figure.legend(
        handles, labels, fontsize=8, ncols=min(fitting, len(labels)), loc="outside upper center"
    )
    return figure


def _groups(results: Results) -> list[list[int]]:
    """Settings that differ in the last swept field only, in the study's order."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for s, setting in enumerate(results.study.settings):
        groups.setdefault(tuple(getattr(setting, f) for f in results.study.swept[:-1]), []).append(s)
    return list(groups.values())


def _reward_panel(results: Results, group: list[int], axes: Axes) -> None:
    """Every method in the settings of one panel, beside each other so that no mark hides another."""
    methods = results.study.methods
    style_of = styles(methods)
    for n, method in enumerate(methods):
        shown = [at for at, s in enumerate(group) if results.study.plays(s, method.label)]
        values = [results.values(group[at], method.label, Metric.REWARD_RATIO) for at in shown]
        rewards = [student(found) for found in values]
        shift = 0.8 * ((n + 0.5) / len(methods) - 0.5)
        _errorbar(
            axes,
            style_of[method.label],
            x=[at + shift for at in shown],
            y=[r.mean for r in rewards],
            yerr=[r.high - r.mean for r in rewards],
            linestyle="none",
            capsize=1.5,
            markersize=_size(style_of[method.label][2]) - 1.0,
            label=method.label,
        )
    for at in range(1, len(group), 2):
        axes.axvspan(at - 0.5, at + 0.5, color="black", alpha=0.05, linewidth=0)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xlim(-0.5, len(group) - 0.5)
