"""Tables in LaTeX: the paper's own files, and a general table for any study."""

from __future__ import annotations

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results import price_of_safety as prices
from c4b.study.results import published_numbers, world_summary
from c4b.study.results.intervals import student
from c4b.study.results.results import Results

_NAMES = {
    "separate": "Separate",
    "contrast": "Contrast",
    "refresh": r"\textbf{Refresh}",
    "revalue": "Revalue",
    "revalue-f": "Revalue-F",
    "linucb": "LinUCB",
}


def central(results: Results) -> str:
    """``tables/central.tex`` of the paper: reward ratio / fallback %."""
    rows = []
    for method, name in _NAMES.items():
        cells = []
        for history in ("diverse", "baseline"):
            setting = published_numbers.central_setting(results, history)
            ratio = student(results.values(setting, method, Metric.REWARD_RATIO)).mean
            fallback = student(100.0 * results.values(setting, method, Metric.FALLBACK)).mean
            cells.append(f"{ratio:.4f} / {fallback:.1f}")
        rows.append(f"{name} & {' & '.join(cells)} \\\\")
    return _tabular("lrr", r"Method & Diverse history & Baseline-only \\", rows)


def zero_reserve(results: Results) -> str:
    """``tables/zero_reserve.tex`` of the paper: reward ratios at zero reserve."""
    rows: list[str] = []
    for history, title in (("diverse", "Diverse history"), ("baseline", "Baseline-only history")):
        if rows:
            rows.append(r"\midrule")
        rows.append(rf"\multicolumn{{6}}{{l}}{{\emph{{{title}}}}} \\")
        for rho in (0.15, 0.4, 0.8):
            for sigma in (0.1, 0.3):
                setting = results.find(history=history, rho=rho, sigma=sigma, reserve=0.0)
                cells = [
                    f"{student(results.values(setting, method, Metric.REWARD_RATIO)).mean:.3f}"
                    for method in ("contrast", "refresh", "revalue-f", "linucb")
                ]
                rows.append(f"{rho} & {sigma} & {' & '.join(cells)} \\\\")
    return _tabular("rrrrrr", r"$\rho$ & $\sigma$ & C & C+ & R-F & U \\", rows)


def macros(results: Results) -> str:
    """``tables/results_macros.tex`` of the paper."""
    lines = []
    for name, (value, _) in published_numbers.macros(results).items():
        if name == "FailureUpper":
            text = f"{value:.2f}"
        elif "Fallback" in name or "Violations" in name:
            text = f"{value:.1f}"
        else:
            text = f"{value:.4f}"
        lines.append(rf"\newcommand{{\{name}}}{{{text}}}")
    return "\n".join(lines) + "\n"


def overview(results: Results) -> str:
    """Any study: one row per setting, reward ratio / fallback % of every method."""
    fields = list(results.study.swept) or ["history"]
    labels = [method.label for method in results.study.methods]
    rows = []
    for s, setting in enumerate(results.study.settings):
        cells = [_escape(str(getattr(setting, field))) for field in fields]
        for label in labels:
            if not results.study.plays(s, label):
                cells.append("--")
                continue
            ratio = student(results.values(s, label, Metric.REWARD_RATIO)).mean
            fallback = student(100.0 * results.values(s, label, Metric.FALLBACK)).mean
            cells.append(f"{ratio:.4f} / {fallback:.1f}")
        rows.append(f"{' & '.join(cells)} \\\\")
    heading = " & ".join(map(_escape, [*fields, *labels])) + r" \\"
    return _tabular("l" * len(fields) + "r" * len(labels), heading, rows)


def price_of_safety(results: Results) -> str:
    """Every setting and method beside the yardsticks of ``c4b.study.results.price_of_safety``."""
    rows = [" & ".join(map(_escape, row)) + r" \\" for row in prices.table_rows(results)]
    heading = " & ".join(map(_escape, prices.HEADING)) + r" \\"
    return _tabular("ll" + "r" * (len(prices.HEADING) - 2), heading, rows)


def worlds(results: Results) -> str:
    """The table of ``c4b.study.results.world_summary``."""
    rows = [
        " & ".join(map(_escape, world_summary.cells(row))) + r" \\"
        for row in world_summary.world_rows(results)
    ]
    heading = " & ".join(map(_escape, world_summary.HEADING)) + r" \\"
    return _tabular("l" + "r" * (len(world_summary.HEADING) - 1), heading, rows)


_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        **{character: "\\" + character for character in "&%$#_{}"},
    }
)


def _escape(text: str) -> str:
    return text.translate(_SPECIAL)


def _tabular(columns: str, heading: str, rows: list[str]) -> str:
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", heading, r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"
