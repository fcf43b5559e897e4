"""Writes tables, figures, comparison and page from saved results alone."""

from __future__ import annotations

import json
from pathlib import Path

from c4b.study.report import html_page, latex_tables
from c4b.study.results import price_of_safety, published_numbers, world_summary
from c4b.study.results.results import Results


def write_report(results: Results) -> Path:
    """Write the tables, figures, comparison and page of a study into its folder; returns the page."""
    from c4b.study.report import figures  # noqa: PLC0415 (matplotlib is slow to import)

    folder = results.folder
    (folder / "tables").mkdir(exist_ok=True)
    (folder / "tables" / "overview.tex").write_text(latex_tables.overview(results))
    if published_numbers.is_papers_study(results):
        (folder / "tables" / "central.tex").write_text(latex_tables.central(results))
        (folder / "tables" / "zero_reserve.tex").write_text(latex_tables.zero_reserve(results))
        (folder / "tables" / "results_macros.tex").write_text(latex_tables.macros(results))
        comparison = published_numbers.to_json(published_numbers.compare(results))
        (folder / "comparison.json").write_text(json.dumps(comparison, indent=1) + "\n")
    if price_of_safety.is_priced(results):
        (folder / "tables" / "price.tex").write_text(latex_tables.price_of_safety(results))
    if world_summary.is_of_worlds(results):
        (folder / "tables" / "worlds.tex").write_text(latex_tables.worlds(results))
    pictures = figures.draw(results, folder / "figures")
    page = folder / "report.html"
    page.write_text(html_page.page(results, pictures), encoding="utf-8")
    return page
