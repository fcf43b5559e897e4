"""One self-contained HTML page: measured and published numbers, safety, figures and what was run."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from c4b.study.engine.episode_metrics import Metric
from c4b.study.report.figure_style import sensitivity_setting, trajectory_setting
from c4b.study.results import price_of_safety, published_numbers, world_summary
from c4b.study.results.intervals import student
from c4b.study.results.results import Results
from c4b.study.results.safety_summary import SafetyRow, reserve_cost, safety

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #1a7f37; --bad: #c62828; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.scroll { overflow-x: auto; font-size: .93em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid var(--line); }
th, td { text-align: right; } td { white-space: nowrap; } th { vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom-width: 2px; }
figure { margin: 1rem 0; } figure img { max-width: 100%; background: white; }
figcaption, .note { color: color-mix(in srgb, currentColor 70%, transparent); font-size: .9em; }
.verdict { padding: .6rem .9rem; background: var(--soft); border-left: 4px solid var(--good); }
.verdict.bad { border-color: var(--bad); } summary { margin-top: .6rem; cursor: pointer; }
@media (max-width: 40rem) { td:first-child { white-space: normal; min-width: 8rem; } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } }
"""
UNKNOWN = "\N{EN DASH}"
"""A number that the method's gate does not say."""
GLOSSARY = {
    "reward ratio": "mean reward of what was executed over the baseline's, so 1.05 is 5 % more",
    "fallback": "a round in which the baseline was played",
    "contrast": "a candidate's mean reward minus 1 - alpha times the baseline's: what playing it adds to "
    "the budget",
    "reserve, R0": "what may be lost in total, in reward units; the budget starts with it",
    "bank, B": "the certified part of the budget, a lower bound on it",
    "true credit, D": "the budget itself, known to the evaluator only: R0 plus all true contrasts so far",
    "violation": "an episode in which the true credit was below 0 in some round",
    "coverage failure": "an episode in which the confidence set missed the truth in some round; it may "
    "happen with probability delta",
    "history": "observations before the first round: evidence, never budget",
    "95 % interval": "Student's, over episodes; of a difference: paired by episode, because all methods "
    "see the same draws",
}


def caption(results: Results, name: str) -> str:
    """What a figure shows, where, over how many episodes."""
    episodes = f"{results.study.episodes:,} episodes"
    if name == "cumulative_fallback":
        where = results.describe(trajectory_setting(results))
        return (
            f"Cumulative fallback ({where}). Curves average {episodes}; bars mark pointwise 95 % "
            "intervals at some rounds."
        )
    if name == "reserve_sensitivity":
        like = results.describe(sensitivity_setting(results))
        where = ", ".join(part for part in like.split(", ") if not part.startswith("reserve="))
        return (
            f"Reserve sensitivity ({where}). Points are means with pointwise 95 % intervals over "
            f"{episodes}; lines connect the tested values."
        )
    if name == "price_of_safety":
        return (
            "The price of safety: reward ratio of LinUCB without a gate minus that of each method, all "
            f"on one scale, paired over {episodes} a setting, with 95 % intervals. Left of 0 the method "
            "earns more."
        )
    if name == "worlds":
        return (
            "Reward ratio of the judged method minus that of each yardstick, paired over "
            f"{episodes} a world, with 95 % intervals; linear between the ticks beside 0, else "
            "logarithmic. Cross: below."
        )
    if name == "reward_ratio":
        return f"Mean reward of every method, with 95 % intervals over {episodes} a setting."
    return name


def verdict(results: Results) -> tuple[bool, str]:
    """(whether all is well, one sentence on whether the study reproduces the paper and was safe)."""
    rows = [row for row in safety(results) if row.gated]
    violations = sum(row.violations for row in rows)
    uncovered = sum(row.uncovered or 0 for row in rows)
    safe = _counts(rows)
    if not published_numbers.is_papers_study(results):
        good = not any(row.violations if row.on_covered is None else row.on_covered for row in rows)
        return good, f"{safe}."
    scores = [abs(c.z) for c in published_numbers.compare(results)]
    fits = max(scores) <= published_numbers.ACCEPTED
    start = "REPRODUCED" if fits and not violations and not uncovered else "NOT REPRODUCED"
    return start == "REPRODUCED", (
        f"{start}: largest |z| is {max(scores):.2f} over {len(scores)} published numbers "
        f"({sum(score <= 3.0 for score in scores)} within 3); {safe}."
    )


def _counts(rows: list[SafetyRow]) -> str:
    """Violations and coverage failures of gated methods, in words."""
    if not rows:
        return "no gated method, nothing certified"
    violations, episodes = sum(row.violations for row in rows), sum(row.episodes for row in rows)
    known = [row for row in rows if row.uncovered is not None]
    uncovered = sum(row.uncovered or 0 for row in known)
    if len(known) == len(rows):
        return f"{violations} violations and {uncovered} coverage failures in {episodes:,} gated episodes"
    text = f"{violations} violations in {episodes:,} gated episodes"
    if known:
        text += f", {uncovered} coverage failures in {sum(row.episodes for row in known):,}"
    unknown = ", ".join(row.method for row in rows if row.uncovered is None)
    return f"{text} (not known for {unknown})"


def page(results: Results, pictures: Sequence[Path]) -> str:
    """The whole page; ``pictures`` are PNG files that it embeds."""
    study = results.study
    good, line = verdict(results)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        "<link rel='icon' href='data:,'>",
        f"<title>{escape(study.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(study.title)}</h1>",
        f"<p class='verdict{'' if good else ' bad'}'>{escape(line)}</p>",
    ]
    if published_numbers.is_papers_study(results):
        parts += [_headline(results), _all_numbers(results)]
    if world_summary.is_of_worlds(results):
        parts.append(_worlds(results))
    elif price_of_safety.is_priced(results):
        parts.append(_price(results))
    parts.append("<h2>Figures</h2>")
    parts += [_figure(results, number, path) for number, path in enumerate(pictures, 1)]
    parts += [_overview(results), _safety(results), _reserve(results), _glossary()]
    parts.append(_what_was_run(results))
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _table(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in heading)
    body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(value: float | None, format_: str) -> str:
    return UNKNOWN if value is None else f"{value:{format_}}"


def central_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """The paper's central table, each cell "measured (published)"."""
    heading = ["method"]
    heading += [
        f"{name}: {what}" for name in ("diverse", "baseline-only") for what in ("ratio", "fallback %")
    ]
    printed = published_numbers.published()["central"]
    rows = []
    for method in published_numbers.METHODS:
        row = [method]
        for history in ("diverse", "baseline"):
            setting = published_numbers.central_setting(results, history)
            ratio, fallback = printed[history][method]
            reward = student(results.values(setting, method, Metric.REWARD_RATIO)).mean
            share = student(100.0 * results.values(setting, method, Metric.FALLBACK)).mean
            row += [f"{reward:.4f} ({ratio:.4f})", f"{share:.1f} ({fallback:.1f})"]
        rows.append(row)
    return heading, rows


def _headline(results: Results) -> str:
    note = "Measured (published) at rho = 0.15, sigma = 0.3, no reserve: the paper's Table 1."
    return f"<h2>Measured beside published</h2><p class='note'>{note}</p>" + _table(
        *central_rows(results)
    )


def _all_numbers(results: Results) -> str:
    rows = [
        [c.name, f"{c.published:g}", f"{c.measured:.4f}", f"{c.se:.2g}", f"{c.z:+.2f}"]
        for c in published_numbers.compare(results)
    ]
    heading = ["number", "published", "measured", "standard error", "z"]
    return (
        f"<details><summary>All {len(rows)} published numbers</summary>{_table(heading, rows)}</details>"
    )


def _figure(results: Results, number: int, path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    text = escape(caption(results, path.stem), quote=True)
    return (
        f"<figure id='figure-{number}'><img alt='{text}' src='data:image/png;base64,{data}'>"
        f"<figcaption><b>Figure {number}.</b> {text}</figcaption></figure>"
    )


def _glossary() -> str:
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in GLOSSARY.items())
    return f"<h2>Glossary</h2><dl>{items}</dl>"


def _overview(results: Results) -> str:
    labels = [method.label for method in results.study.methods]
    rows = []
    for s in range(len(results.study.settings)):
        cells = [results.describe(s)]
        for label in labels:
            if not results.study.plays(s, label):
                cells.append(UNKNOWN)
                continue
            ratio = student(results.values(s, label, Metric.REWARD_RATIO))
            share = 100.0 * student(results.values(s, label, Metric.FALLBACK)).mean
            cells.append(f"{ratio.mean:.4f} ± {ratio.high - ratio.mean:.4f} / {share:.1f}")
        rows.append(cells)
    return (
        "<h2>Every setting</h2><p class='note'>Reward ratio ± half a 95 % interval / fallback %.</p>"
        + _table(["setting", *labels], rows)
    )


def _price(results: Results) -> str:
    tallies = price_of_safety.tallies(results)
    items = "".join(f"<li>{escape(price_of_safety.sentence(tally))}.</li>" for tally in tallies)
    note = (
        "Differences are paired by episode, ± half a 95 % interval. Not below: that interval reaches 0. "
        "Floor: fallback that no gate certified over the whole set can avoid."
    )
    return (
        f"<h2>The price of safety</h2><ul>{items}</ul><p class='note'>{note}</p>"
        + "<details><summary>Every setting and method</summary>"
        + _table(*price_of_safety.compact_table(results))
        + "</details>"
    )


def _worlds(results: Results) -> str:
    rows = [world_summary.cells(row) for row in world_summary.world_rows(results)]
    return (
        f"<h2>World by world</h2><p>{escape(world_summary.sentence(results))}.</p>"
        f"<p class='note'>{escape(world_summary.UNITS)}</p>" + _table(world_summary.HEADING, rows)
    )


def _safety(results: Results) -> str:
    rows = [
        [
            row.method,
            f"{row.episodes:,}",
            f"{row.violations:,}",
            _cell(row.on_covered, ","),
            _cell(row.uncovered, ","),
            f"{100 * row.bound:.2f} %",
            _cell(row.min_slack, ".4g") if row.gated else "no gate",
        ]
        for row in safety(results)
    ]
    heading = [
        "method",
        "episodes",
        "violations",
        "on covered paths",
        "coverage failures",
        "95 % bound, worst setting",
        "smallest slack D - B",
    ]
    note = (
        "A violation is a round at which R0 plus the cumulative true contrast is below 0. The bound is "
        "one-sided, for one fixed setting, not for all at once. These counts check the implementation; "
        "the guarantee comes from the theorem. Slack is in reward units, over covered paths."
    )
    return f"<h2>Safety</h2><p class='note'>{note}</p>" + _table(heading, rows)


def _reserve(results: Results) -> str:
    rows = [
        [
            results.describe(row.setting),
            row.method,
            _cell(row.joint, ".3f"),
            _cell(row.separate, ".3f"),
            _cell(None if row.joint is None or row.separate is None else row.separate - row.joint, ".3f"),
            _cell(row.penalty, ".3f"),
            UNKNOWN if row.holds is None else "yes" if row.holds else "NO",
        ]
        for row in reserve_cost(results)
    ]
    if not rows:
        return ""
    heading = [
        "setting",
        "method",
        "R_min joint",
        "R_min separate",
        "extra",
        "sum of penalties",
        "(15) holds",
    ]
    note = (
        "Reserve (reward units, mean over episodes) that frozen certificates would need along the "
        "executed path, and the bound of Proposition 2, checked in every episode."
    )
    return f"<h2>What decoupling costs</h2><p class='note'>{note}</p>" + _table(heading, rows)


def _what_was_run(results: Results) -> str:
    run, study = results.run, results.study
    facts = [
        ("command", run["command"] or "c4b.study.engine.run.run(...)"),
        ("seed", str(study.seed)),
        (
            "size",
            f"{len(study.settings)} settings x {len(study.methods)} methods x {study.episodes} episodes",
        ),
        ("simulation", f"{run['seconds_simulating']} s, workers: {run['workers']}"),
        ("machine", f"{run['machine']}, Python {run['python']}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in run["versions"].items())),
    ]
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f"<h2>What was run</h2><dl>{items}</dl>"
