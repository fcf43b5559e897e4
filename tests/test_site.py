"""The documentation as a site: it builds without a warning, and its pages fetch nothing."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

import c4b
from support.browser import chromium

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tools; what MkDocs itself warns of is an error
        patch.chdir(ROOT)
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        build(load_config("mkdocs.yml", site_dir=str(folder), strict=True))
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) >= 20
    for page in pages:
        assert (site / page).with_suffix(".html").is_file()
    assert (site / "search" / "search_index.js").is_file()


def test_a_page_is_called_as_in_the_navigation() -> None:
    navigation = load_config(str(ROOT / "mkdocs.yml")).nav
    sections = [pages for each in navigation for pages in each.values() if isinstance(pages, list)]
    entries = [entry for pages in sections for page in pages for entry in page.items()]
    assert len(entries) >= 20
    for title, path in entries:
        assert (ROOT / "docs" / path).read_text().splitlines()[0] == f"# {title}"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.findall(r'(?:src|href)="?(?:https?:)?//[^" >]+', page.read_text()), page
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text()), sheet


def test_the_reference_is_filled_in(site: Path) -> None:
    commands = (site / "reference/command-line.html").read_text()
    assert "c4b deploy audit" in commands
    assert "[bold]" not in commands
    assert "<code>c4b plan log.parquet --action page" in commands
    routes = (site / "reference/http.html").read_text()
    assert "/v1/deployments/{name}/decisions" in routes
    assert "go live" in routes
    python = (site / "reference/python.html").read_text()
    assert 'id="c4b.Policy.decide"' in python
    for name in set(c4b.__all__) - {"errors", "policies"}:  # modules, whose parts are there
        assert re.search(rf'id="c4b\.(?:\w+\.)*{name}"', python), name
    assert "<strong>norm_bound</strong>" in python
    assert not re.search(r":(?:class|meth|mod):<code>|-{5,}", python)


def test_search_works_from_a_disk(site: Path) -> None:
    """Opened as a file, without a server: the search answers and nothing else is asked for."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 400, "height": 800})
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("s")
        page.keyboard.type("norm bound")
        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
        page.wait_for_function("document.documentElement.scrollWidth <= 400")  # the search slides in
        assert all(url.startswith(("file:", "data:")) for url in asked)
