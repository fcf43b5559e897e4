"""Tables, figures, comparison and page, made from saved results alone."""

from __future__ import annotations

import json
from pathlib import Path

from c4b.study.report import figures, tables
from c4b.study.report import page as report
from c4b.study.results import price, published
from c4b.study.results.results import Results


def write(results: Results) -> Path:
    """Write everything that follows from the results into their folder; returns the page."""
    folder = results.folder
    (folder / "tables").mkdir(exist_ok=True)
    (folder / "tables" / "overview.tex").write_text(tables.overview(results))
    if published.is_papers_study(results):
        (folder / "tables" / "central.tex").write_text(tables.central(results))
        (folder / "tables" / "zero_reserve.tex").write_text(tables.zero_reserve(results))
        (folder / "tables" / "results_macros.tex").write_text(tables.macros(results))
        told = published.to_json(published.compare(results))
        (folder / "comparison.json").write_text(json.dumps(told, indent=1) + "\n")
    if price.is_priced(results):
        (folder / "tables" / "price.tex").write_text(tables.price_of_safety(results))
    pictures = figures.draw(results, folder / "figures")
    page = folder / "report.html"
    page.write_text(report.page(results, pictures), encoding="utf-8")
    return page
