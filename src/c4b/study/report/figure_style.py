"""What all figures share: how methods look, how settings are called, which ones are drawn."""

from __future__ import annotations

from collections.abc import Iterable

from c4b.study.results.price_of_safety import LATE, UNGATED
from c4b.study.results.results import Results
from c4b.study.spec.plan import Method
from c4b.study.spec.setting import Setting

Style = tuple[str, str | tuple[float, tuple[float, ...]], str]
"""(colour, line style, marker)"""
# line style and marker tell policies apart in grey
_OWN: dict[str, Style] = {
    "separate": ("#7f7f7f", (0, (1, 1)), "o"),
    "contrast": ("#1f77b4", (0, (5, 2)), "s"),
    "refresh": ("#d62728", "-", "D"),
    "revalue": ("#9467bd", (0, (3, 1, 1, 1)), "v"),
    "revalue-f": ("#2ca02c", (0, (3, 1, 1, 1, 1, 1)), "^"),
    UNGATED: ("#000000", (0, (1, 3)), "x"),
    LATE: ("#555555", (0, (1, 5)), "X"),
    "checkpoints": ("#8c564b", (0, (7, 1)), "P"),
    "reserve-c4b+": ("#00707a", (0, (9, 1, 2, 1)), "*"),
}
_OTHERS: list[Style] = [
    ("#e377c2", (0, (2, 2)), "p"),
    ("#b8860b", (0, (6, 2, 1, 2)), "<"),
    ("#393b79", (0, (4, 4)), ">"),
    ("#17a2b8", (0, (2, 1, 2, 3)), "h"),
    ("#637939", (0, (10, 3)), "d"),
    ("#843c39", (0, (1, 2, 4, 2)), "8"),
]


def styles(methods: Iterable[Method]) -> dict[str, Style]:
    """Style by label: a policy under its own name has its own style, others take unused ones in order."""
    methods = list(methods)
    named = {m.label for m in methods if m.label in _OWN and m.policy == m.label.split(",")[0]}
    left = [*_OTHERS, *(style for name, style in _OWN.items() if name not in named)]
    rest = [m.label for m in methods if m.label not in named]
    return {name: _OWN[name] for name in named} | {
        label: left[n % len(left)] for n, label in enumerate(rest)
    }


_SYMBOLS = {
    "rho": r"$\rho$",
    "sigma": r"$\sigma$",
    "reserve": "$R_0$",
    "alpha": r"$\alpha$",
    "delta": r"$\delta$",
    "theta": r"$\theta$",
}
_UNNAMED = ("history", "noise", "generator", "confidence")
"""Fields whose values need no name beside them."""


def named(field: str) -> str:
    """A field of a setting as an axis is labelled."""
    return _SYMBOLS.get(field, field)


def short_name(results: Results, setting: int, without: str = "") -> str:
    """``Results.describe`` in symbols, with the fields that differ between settings only."""
    settings = results.study.settings
    swept = [f for f in results.study.swept if len({getattr(s, f) for s in settings}) > 1]
    return ", ".join(_short(settings[setting], f) for f in swept or ["history"] if f != without)


def _short(setting: Setting, field: str) -> str:
    value = getattr(setting, field)
    text = (
        f"{value:g}"
        if isinstance(value, float)
        else str(list(value) if isinstance(value, tuple) else value)
    )
    text = text.replace("$", r"\$")  # no formula begins here
    return text if field in _UNNAMED and value is not None else f"{_SYMBOLS.get(field, field)} {text}"


def trajectory_setting(results: Results) -> int:
    """The setting of ``cumulative_fallback``: the paper's, or else the first."""
    return _first(results.study.settings, history="diverse", rho=0.15, sigma=0.3, reserve=0.0)


def sensitivity_setting(results: Results) -> int:
    """The setting of ``reserve_sensitivity``, whose reserve varies: the paper's, or else the first."""
    return _first(results.study.settings, history="baseline", rho=0.4, sigma=0.3)


def _first(settings: tuple[Setting, ...], **wanted: object) -> int:
    """The setting with these values, or else the first."""
    for s, setting in enumerate(settings):
        if all(getattr(setting, field) == value for field, value in wanted.items()):
            return s
    return 0
