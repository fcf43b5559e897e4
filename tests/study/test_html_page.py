"""The page: self-contained, well-formed, and it says what was found."""

import re
import struct
from html.parser import HTMLParser

import pytest

from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.report import html_page
from c4b.study.report.figures import draw
from c4b.study.results.results import Results
from c4b.study.spec.plan import Method
from support.small_studies import small_study

VOID = {"meta", "link", "img", "br", "hr"}


class Page(HTMLParser):
    """Balanced tags, text by tag, and every address a browser would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.cells: list[int] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        assert tag != "script"
        if tag == "img":
            assert dict(attrs).get("alt")
        if tag == "tr":
            self.cells.append(0)
        if tag in ("td", "th"):
            self.cells[-1] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def said(self, tag: str) -> list[str]:
        return [text for at, text in self.texts if at == tag]


@pytest.fixture(scope="module")
def html(paper: Results) -> str:
    return (paper.folder / "report.html").read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_fetches_nothing(html: str) -> None:
    page = Page(html)
    assert html.startswith("<!doctype html><html lang='en'>")
    assert len(page.addresses) == 4  # the icon and three figures
    assert all(address.startswith("data:") for address in page.addresses)
    assert not re.search(r"https?://|@import|url\(", html)


def test_the_page_shows_what_was_found(html: str, paper: Results) -> None:
    page = Page(html)
    headings = ["Measured beside published", "Figures", "Every setting", "Safety",
                "What decoupling costs", "Glossary", "What was run"]  # fmt: skip
    assert page.said("h2") == headings
    assert html_page.verdict(paper)[1] in page.said("p")
    assert "All 87 published numbers" in page.said("summary")
    facts = dict(zip(page.said("dt"), page.said("dd"), strict=True))
    assert facts["command"] == "c4b reproduce --episodes 64"
    assert facts["seed"] == "20261"
    assert facts["size"] == "36 settings x 6 methods x 64 episodes"
    assert "reserve-c4b" in facts["versions"]
    cells = [text for text in page.said("td") if text.endswith("(1.0606)")]
    setting = paper.find(history="diverse", rho=0.15, sigma=0.3, reserve=0.0)
    assert cells == [f"{paper.values(setting, 'refresh', Metric.REWARD_RATIO).mean():.4f} (1.0606)"]


def test_figures_are_numbered_and_captioned_as_in_the_paper(html: str) -> None:
    captions = re.findall(r"<figcaption><b>(Figure \d)\.</b> (.*?)</figcaption>", html)
    assert [number for number, _ in captions] == ["Figure 1", "Figure 2", "Figure 3"]
    first, second, third = (text for _, text in captions)
    assert first.startswith(
        "Cumulative fallback (history=diverse, rho=0.15, sigma=0.3, reserve=0.0). Curves"
    )
    assert second.startswith(
        "Reserve sensitivity (history=baseline, rho=0.4, sigma=0.3). Points are means"
    )
    for text in (first, second, third):
        assert "64 episodes" in text
        assert "95 % intervals" in text


def test_figures_fit_a_screen(paper: Results) -> None:
    for path in (paper.folder / "figures").glob("*.png"):
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert width <= 2000, path.name
        assert height <= 1000, path.name


def test_figures_are_pdf_and_png(paper: Results) -> None:
    names = {path.name for path in (paper.folder / "figures").iterdir()}
    stems = ("cumulative_fallback", "reserve_sensitivity", "reward_ratio")
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("pdf", "png")}
    for path in (paper.folder / "figures").iterdir():
        start = b"%PDF" if path.suffix == ".pdf" else b"\x89PNG"
        assert path.read_bytes().startswith(start)


def test_the_same_results_draw_the_same_files(
    paper: Results, tmp_path_factory: pytest.TempPathFactory
) -> None:
    again = tmp_path_factory.mktemp("again")
    draw(paper, again)
    for path in again.iterdir():
        assert path.read_bytes() == (paper.folder / "figures" / path.name).read_bytes(), path.name


def test_names_from_a_study_file_are_text_not_markup(tmp_path_factory: pytest.TempPathFactory) -> None:
    study = small_study(("refresh",), episodes=2).with_(
        title="<b>&mine</b>", methods=(Method("<script>x</script>", "refresh"), Method("$x$_1", "linucb"))
    )
    found = run(study, tmp_path_factory.mktemp("markup"), command="c4b <i>")
    page = Page(html_page.page(found, draw(found, found.folder / "figures")))
    assert page.said("h1") == ["<b>&mine</b>"]
    assert "<script>x</script>" in page.said("th")


def test_every_row_of_a_table_is_as_wide_as_its_heading(html: str) -> None:
    for part in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        assert len(set(Page(part).cells)) == 1


def test_a_failed_reproduction_is_said(paper: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_page.published_numbers, "ACCEPTED", 0.0)
    good, line = html_page.verdict(paper)
    assert not good
    assert line.startswith("NOT REPRODUCED: largest |z| is ")


def test_a_study_without_a_gate_certifies_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = run(small_study(("linucb",), episodes=2), tmp_path_factory.mktemp("ungated"))
    assert html_page.verdict(found) == (True, "no gated method, nothing certified.")
    assert "What decoupling costs" not in html_page.page(found, [])
