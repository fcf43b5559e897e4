"""Differences between two folders of results, paired episode by episode."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import Estimate, paired
from c4b.study.results.results import NoResults, Results
from c4b.study.spec.plan import Method
from c4b.study.spec.setting import Setting


class Difference(NamedTuple):
    """First minus second, over the episodes that both folders hold."""

    setting: str
    method: str
    reward_ratio: Estimate
    fallback: Estimate  # in percentage points


def differences(first: Results, second: Results) -> list[Difference]:
    """Every setting and method label that both folders hold.

    Pairing needs common draws, so both must have been run with the same seed.
    """
    if first.study.seed != second.study.seed:
        raise NoResults(
            f"{first.folder} has seed {first.study.seed}, {second.folder} has {second.study.seed}: "
            "episodes cannot be paired; run one again with the other's seed"
        )
    episodes = min(first.study.episodes, second.study.episodes)
    rows = []
    for s, o in _pairs(first, second):
        for label in _labels(first, second):
            if not (first.study.plays(s, label) and second.study.plays(o, label)):
                continue
            pair = [
                paired(
                    scale * first.values(s, label, metric)[:episodes],
                    scale * second.values(o, label, metric)[:episodes],
                )
                for metric, scale in ((Metric.REWARD_RATIO, 1.0), (Metric.FALLBACK, 100.0))
            ]
            rows.append(Difference(first.describe(s), label, *pair))
    if not rows:
        raise NoResults(f"{first.folder} and {second.folder} have no setting and method in common")
    return rows


def describe_comparison(first: Results, second: Results) -> list[str]:
    """Sentences on what ``differences`` compared: how many episodes, what was left out, what differs."""
    counts = first.study.episodes, second.study.episodes
    of = "" if counts[0] == counts[1] else f" (of {counts[0]} and {counts[1]})"
    lines = [f"Paired over {min(counts)} episodes{of}."]
    pairs, labels = _pairs(first, second), _labels(first, second)
    for side, results in enumerate((first, second)):
        matched = {pair[side] for pair in pairs}
        settings = [results.describe(s) for s in range(len(results.study.settings)) if s not in matched]
        methods = [m.label for m in results.study.methods if m.label not in labels]
        left_out = [*_counted("setting", settings), *_counted("method", methods)]
        if left_out:
            lines.append(f"Only in {results.folder}, left out: {'; '.join(left_out)}.")
    unlike = _unlike_fields(first, second, pairs, labels)
    differing = "; ".join(unlike) if unlike else "nothing in the plans of what was paired"
    return [*lines, f"What differs: {differing}."]


def _counted(what: str, names: list[str], most: int = 3) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return [f"{len(names)} {what}{'s' if len(names) > 1 else ''} ({' | '.join(names[:most])}{more})"]


def _unlike_fields(
    first: Results, second: Results, pairs: list[tuple[int, int]], labels: list[str]
) -> list[str]:
    """Fields in which paired settings or methods of one label differ, "alpha 0.05 against 0.1"."""
    settings = [(first.study.settings[s], second.study.settings[o]) for s, o in pairs]
    mine, other = ({m.label: m for m in r.study.methods} for r in (first, second))
    unlike = _unlike_values("", settings)
    for label in labels:
        unlike += _unlike_values(f"{label}: ", [(mine[label], other[label])])
    return unlike


def _unlike_values(
    prefix: str, couples: Iterable[tuple[Setting, Setting] | tuple[Method, Method]]
) -> list[str]:
    values: dict[str, dict[str, None]] = {}
    for a, b in couples:
        for field in dataclasses.fields(a):
            mine, other = getattr(a, field.name), getattr(b, field.name)
            if field.name != "parts" and mine != other:
                values.setdefault(field.name, {})[f"{mine} against {other}"] = None
        if (
            isinstance(a, Method)
            and isinstance(b, Method)
            and a.policy == b.policy
            and a.parts != b.parts
        ):
            values.setdefault("parts", {})["of the policy"] = None
    return [f"{prefix}{name} {', '.join(texts)}" for name, texts in values.items()]


def _labels(first: Results, second: Results) -> list[str]:
    """Methods that both have."""
    others = {method.label for method in second.study.methods}
    return [method.label for method in first.study.methods if method.label in others]


def _pairs(first: Results, second: Results) -> list[tuple[int, int]]:
    """Numbers of the settings that are compared."""
    return [
        (s, o)
        for s in range(len(first.study.settings))
        for o in range(len(second.study.settings))
        if _alike(first, s, second, o)
    ]


def _alike(first: Results, s: int, second: Results, o: int) -> bool:
    """Equal in every field that either study sweeps."""
    fields = {*first.study.swept, *second.study.swept}
    a, b = first.study.settings[s], second.study.settings[o]
    return all(getattr(a, f) == getattr(b, f) for f in fields)
