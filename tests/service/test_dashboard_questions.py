"""What a manager asks the dashboard: is it earning, with what, why this one, since when the alarm."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from c4b import Client, LinearModel
from support.browser import chromium, overlapping_labels, recorded_page
from support.service_process import Service
from support.token_service import TokenService

MODEL = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
NARROW = {"width": 400, "height": 800}
LABELS = ["red <b>", "blue"]
CANDIDATES = [[1.0, 0.8], [1.0, -0.3]]
INCUMBENT = [1.0, 0.0]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def shop(service: Service) -> list[str]:
    """A deployment that earns more than its incumbent; returns the ids of its decisions."""
    with Client(service.url) as client:
        client.create("earner", MODEL, alpha=0.1, reserve=1.0)
        client.learn("earner", [INCUMBENT, [1.0, 0.5]] * 60, [0.5, 0.75] * 60)
        rounds = [(CANDIDATES, INCUMBENT)] * 60
        ids = [f"visit-{n}" for n in range(60)]
        made = client.decide_many("earner", rounds, ids, labels=[LABELS] * 60)
        client.observe_many("earner", [(each.id, 0.9) for each in made[:50]])
        client.forget("earner", made[50].id)
    return [each.id for each in made]


def figure(page: Page, name: str) -> Locator:
    return page.locator(".earnings .figures > div").filter(has=page.get_by_text(name, exact=True))


def test_it_says_first_whether_it_earns(browser: Browser, service: Service, shop: list[str]) -> None:
    with Client(service.url) as client:
        all_time = client.earnings("earner")
        assert all_time.certified_share is not None
        assert 0.0 < all_time.certified_share < (all_time.uplift_share or 0.0)
    with recorded_page(browser, service.url) as seen:
        page = seen.open("#/d/earner")
        headline = page.locator(".earned")
        share = f"{100 * all_time.certified_share:.1f}"
        expect(headline).to_have_text(
            re.compile(
                rf"Earned an estimated .*\s% more than .*; at least {share}\s% more is certified\."
            )
        )
        first = page.locator("main h2:visible").first
        expect(first).to_have_text("Is it earning?")
        expect(figure(page, "Earned")).to_contain_text("45")  # 50 rewards of 0.9
        expect(figure(page, "Uplift, certified")).to_contain_text(f"+{share}")
        chart = page.get_by_role("figure").filter(has_text="Uplift of all decisions")
        expect(chart.locator("path.certified")).to_have_count(1)
        page.get_by_role("button", name="Last hour").click()
        expect(page.get_by_role("button", name="Last hour")).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_text("All decisions so far: 60 decisions")).to_be_visible()
        advanced = page.locator("details", has=page.get_by_text("Advanced: the confidence set"))
        expect(advanced.get_by_role("slider", name=re.compile("^Radius"))).to_be_hidden()
        items = page.get_by_role("table", name=re.compile("The most played item comes first"))
        expect(items.get_by_role("row").nth(1)).to_contain_text("red <b>")
        expect(items.get_by_role("row").nth(1)).to_contain_text(re.compile(r"60.*60.*50.*0\.900"))
        seen.check()


def test_a_decision_is_found_and_says_why(browser: Browser, service: Service, shop: list[str]) -> None:
    with recorded_page(browser, service.url) as seen:
        page = seen.open("#/d/earner")
        rows = page.locator("table.decisions tbody tr")
        expect(rows).to_have_count(25)
        expect(rows.first).to_contain_text("red <b>")
        page.get_by_text("Find decisions").click()
        page.locator(".find").get_by_label("Request id").fill("visit-7")
        page.get_by_role("button", name="Find", exact=True).click()
        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text(shop[7])
        page.locator(".find").get_by_label("Request id").fill("")
        page.locator(".find").get_by_label("Outcome").select_option("forgotten")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Find", exact=True).click()
        expect(rows.first).to_contain_text(shop[50])
        expect(page.get_by_role("status").filter(has_text="found")).to_have_text("1 decision found.")
        page.get_by_label("Label of the played candidate").fill("nobody")
        page.get_by_role("button", name="Find", exact=True).click()
        expect(rows).to_have_count(0)
        page.get_by_role("button", name="Show all again").click()
        expect(rows).to_have_count(25)
        page = seen.open(f"#/d/earner/decisions/{shop[7]}")
        expect(page.locator(".summary")).to_contain_text("'red <b>' (candidate 0) was played")
        expect(page.locator(".because")).to_contain_text("a score of")
        expect(page.locator(".rule")).to_contain_text("Saving up: if the best-scored candidate")
        table = page.get_by_role("table", name=re.compile("Every candidate"))
        expect(table.get_by_role("columnheader", name="Score")).to_be_visible()
        expect(table).to_contain_text("blue (1)")
        seen.check()


def test_an_alarm_is_dated_and_marked_everywhere(browser: Browser, service: Service) -> None:
    with Client(service.url) as client:
        client.create("refuted", MODEL, alpha=0.1, reserve=5.0)
        before = client.decide("refuted", CANDIDATES, INCUMBENT, labels=LABELS)
        client.observe("refuted", before.id, 0.7)
        last = before
        while client.deployment("refuted").state.alarm is None:
            last = client.decide("refuted", CANDIDATES, INCUMBENT, labels=LABELS)
            client.observe("refuted", last.id, -50.0)
        client.decide_many("refuted", [(CANDIDATES, INCUMBENT)] * 3)
    for options in ({"viewport": NARROW}, {}):
        with recorded_page(browser, service.url, **options) as seen:
            page = seen.open("#/d/refuted")
            expect(page.locator(".alarm-since")).to_contain_text(f"after decision {last.id}")
            expect(page.locator(".earned")).to_contain_text("no uplift is certified")
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            charts = page.locator("figure.chart:has(svg.plot)")
            expect(charts.locator("text.mark-name")).to_have_count(charts.count())
            newest = page.locator("table.decisions tbody tr").first
            expect(newest).to_contain_text("alarm: baseline only")
            expect(newest).to_contain_text("void: alarm")
            items = page.get_by_role("table", name=re.compile("The intervals are void"))
            expect(items.get_by_role("row").nth(1)).to_contain_text("void: alarm")
            expect(
                page.get_by_role("table", name=re.compile("all certificates and banks are void"))
            ).to_be_visible()
            expect(page.locator("svg.plot").first).to_contain_text("decision")
            assert overlapping_labels(page) == []
            page = seen.open(f"#/d/refuted/decisions/{before.id}")
            expect(page.get_by_text("This decision was made before the alarm of")).to_be_visible()
            expect(page.get_by_text("void: an alarm came later")).to_be_visible()
            expect(page.get_by_role("heading", name="An alarm came later")).to_be_visible()
            expect(page.get_by_text("would be the certified interval without the alarm")).to_be_visible()
            seen.check()


def test_a_narrow_chart_has_three_ticks(browser: Browser, service: Service, shop: list[str]) -> None:
    with recorded_page(browser, service.url, viewport=NARROW) as seen:
        page = seen.open("#/d/earner")
        expect(page.locator(".earned")).to_be_visible()
        plots = page.locator("figure.chart svg.plot:visible")
        assert plots.count() >= 4
        for n in range(plots.count()):
            assert plots.nth(n).locator("line.notch").count() >= 3
            assert plots.nth(n).locator("line.grid").count() >= 3
        more = "getComputedStyle(document.querySelector('.sideways')).backgroundImage"
        assert "gradient" in page.evaluate(more)  # an edge with more beyond it has a shadow
        seen.check()


def test_the_token_page_names_the_store(browser: Browser, token_service: TokenService) -> None:
    with recorded_page(browser, token_service.service.url) as seen:
        page = seen.open()
        expect(page.get_by_text("c4b token create --scope read --store sqlite:///")).to_be_visible()
        expect(page.get_by_text("tokens.db")).to_be_visible()
        seen.check(("Failed to load resource",))
