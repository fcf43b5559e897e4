"""The dashboard in a real browser, served by a real process."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import c4b.service
from support.browser import (
    PHONE,
    chromium,
    low_contrast_texts,
    overflow_width,
    overlapping_labels,
    recorded_page,
    unnamed_elements,
)
from support.service_process import Service, serving
from support.token_service import TokenService

FILES = Path(c4b.service.__file__).parent / "dashboard"
MODEL = {"dim": 2, "noise": 0.1, "norm_bound": 1.0}
BODY = {"model": MODEL, "policy": "refresh", "alpha": 0.1, "reserve": 2.0}
ROUND = {"candidates": [[1.0, 0.1], [1.0, -0.3]], "baseline": [1.0, 0.0], "context": {"user": "u-1"}}
HISTORY = {"features": [[1.0, 0.0], [1.0, 0.2], [1.0, -0.2]], "rewards": [0.5, 0.55, 0.45]}
REFUSED = "Failed to load resource"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


class Shop:
    """One deployment, driven over HTTP."""

    def __init__(self, service: Service, name: str, **body: Any) -> None:
        self.service = service
        self.at = f"/v1/deployments/{name}"
        self._send("PUT", "", {**BODY, **body})

    def learn(self) -> None:
        self._send("POST", "/history", HISTORY)

    def decide(self, key: str | None = None, **round_: Any) -> dict[str, Any]:
        return self._send("POST", "/decisions", {**ROUND, **round_}, key)

    def decide_many(self, count: int) -> list[dict[str, Any]]:
        return list(self._send("POST", "/decisions/batch", {"rounds": [ROUND] * count})["decisions"])

    def observe(self, id_: str, reward: float) -> None:
        self._send("PUT", f"/decisions/{id_}/outcome", {"reward": reward})

    def _send(self, method: str, path: str, body: object, key: str | None = None) -> dict[str, Any]:
        headers = {} if key is None else {"Idempotency-Key": key}
        with self.service.http() as http:
            response = http.request(method, f"{self.at}{path}", json=body, headers=headers)
        assert response.is_success, response.text
        return dict(response.json())


def tab_to(page: Page, text: str) -> None:
    """Press Tab until the focus is on an element with this text."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            return
    raise AssertionError(f"no element {text!r} is reached with Tab")


def test_the_journey_of_a_decision(browser: Browser, service: Service, name: str) -> None:
    shop = Shop(service, name)
    shop.learn()
    first = shop.decide()
    shop.observe(first["id"], 0.6)
    with recorded_page(browser, service.url) as seen:
        page = seen.open()
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
        expect(row).to_contain_text("OK")
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        expect(page).to_have_title(f"{name} - Reserve-C4B")
        table = page.get_by_role("table", name=re.compile("Newest first"))
        expect(table.get_by_role("row")).to_have_count(2)
        expect(table).to_contain_text("0.600")
        expect(page.get_by_role("img", name=re.compile("the promise is certified"))).to_be_visible()

        second = shop.decide()  # and the page hears of it by itself
        expect(table.get_by_role("row")).to_have_count(3)
        expect(table.get_by_role("row").nth(1)).to_contain_text(second["id"])
        expect(table.get_by_role("row").nth(1)).to_contain_text("pending")
        shop.observe(second["id"], 0.7)
        expect(table.get_by_role("row").nth(1)).to_contain_text("0.700")

        tab_to(page, second["id"])  # the keyboard alone
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Why {second['id']}?")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        assert page.url.endswith(f"#/d/{name}/decisions/{second['id']}")
        expect(page.get_by_text(f"Candidate {second['action']} was played: admissible")).to_be_visible()
        expect(page.get_by_role("img", name=re.compile("2 candidates as intervals"))).to_be_visible()
        cases = page.get_by_role("table", name=re.compile("Every candidate"))
        expect(cases.get_by_role("row")).to_have_count(3)
        expect(cases).to_contain_text("admissible, chosen")

        page.go_back()
        expect(page.get_by_role("link", name=second["id"])).to_be_focused()  # as it was left
        seen.check()


def test_focus_scroll_and_open_details_survive_an_update(
    browser: Browser, service: Service, name: str
) -> None:
    shop = Shop(service, name)
    made = shop.decide_many(12)
    with recorded_page(browser, service.url) as seen:
        page = seen.open(f"#/d/{name}")
        page.get_by_text("Configuration", exact=True).click()
        page.locator("summary", has_text="pending outcomes").click()
        link = page.get_by_role("table", name=re.compile("Newest first")).get_by_role("link").nth(4)
        link.focus()
        top = link.bounding_box()
        shop.decide()
        expect(page.get_by_role("link", name=f"{name}-13").first).to_be_attached()
        expect(page.get_by_role("link", name=made[7]["id"]).last).to_be_focused()
        assert page.locator("details[open]").count() == 2
        now = link.page.locator(":focus").bounding_box()
        assert top is not None
        assert now is not None
        assert abs(now["y"] - top["y"]) < 3  # it did not move under the reader's eyes
        seen.check()


def test_older_decisions_are_read_in_peace(browser: Browser, service: Service, name: str) -> None:
    shop = Shop(service, name)
    shop.decide_many(60)
    with recorded_page(browser, service.url) as seen:
        page = seen.open(f"#/d/{name}")
        rows = page.locator("table.decisions tbody tr")
        expect(rows).to_have_count(25)
        older = page.get_by_role("button", name="Older decisions")
        older.click()
        expect(rows).to_have_count(50)
        older.click()
        expect(rows).to_have_count(60)
        expect(older).to_be_hidden()
        shop.decide()
        fresh = page.get_by_role("button", name="1 newer decision: show the newest")
        expect(fresh).to_be_visible()
        expect(rows).to_have_count(60)
        fresh.click()
        expect(rows).to_have_count(25)
        expect(rows.first).to_contain_text(f"{name}-61")
        seen.check()


def test_a_read_token_is_enough(browser: Browser, token_service: TokenService) -> None:
    with recorded_page(browser, token_service.service.url) as seen:
        page = seen.open()
        field = page.get_by_label("Token")
        expect(field).to_be_focused()
        expect(page.get_by_text("A read token is enough")).to_be_visible()
        field.fill("c4b_000000000000_wrong")
        page.get_by_role("button", name="Enter").click()
        expect(page.get_by_role("alert")).to_contain_text("This token is not valid")
        assert page.evaluate("sessionStorage.length") == 0
        field.fill(token_service.read)
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="mine", exact=True)).to_be_visible()
        assert page.evaluate("JSON.stringify(localStorage)") == "{}"
        page.get_by_role("link", name="mine", exact=True).click()
        page.get_by_role("button", name="Run an audit").click()
        expect(page.get_by_role("status")).to_contain_text("Clean at", timeout=60_000)
        with page.expect_download() as file:
            page.get_by_role("button", name="Export decisions (Parquet)").click()
        assert file.value.suggested_filename == "mine.parquet"
        assert file.value.path().read_bytes()[:4] == b"PAR1"
        page.get_by_role("button", name="Forget token").click()
        expect(page.get_by_label("Token")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0
        assert not any(token_service.read in url for url in seen.requests)
        seen.check((REFUSED,))


def test_a_token_for_one_deployment_says_what_it_lacks(
    browser: Browser, token_service: TokenService
) -> None:
    with recorded_page(browser, token_service.service.url) as seen:
        page = seen.open("#/d/other")
        page.get_by_label("Token").fill(token_service.mine)
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("needs scope read")
        expect(page.get_by_role("alert")).to_contain_text("'mine' only")
        expect(page.get_by_role("heading", name="State of the guarantee")).to_be_hidden()
        page.get_by_role("main").get_by_role("link", name="All deployments").click()
        expect(page.get_by_role("link", name="mine", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="other", exact=True)).to_have_count(0)
        seen.check((REFUSED,))


def test_light_and_dark(browser: Browser, service: Service, name: str) -> None:
    shop = Shop(service, name)
    made = shop.decide_many(5)
    ground = "getComputedStyle(document.body).backgroundColor"
    colours = []
    for scheme in ("light", "dark"):
        with recorded_page(browser, service.url, color_scheme=scheme) as seen:
            page = seen.open(f"#/d/{name}")
            expect(page.get_by_role("heading", name="State of the guarantee")).to_be_visible()
            assert low_contrast_texts(page) == []
            colours.append(page.evaluate(ground))
            page = seen.open(f"#/d/{name}/decisions/{made[0]['id']}")
            expect(page.get_by_text("Penalty avoided:")).to_be_visible()
            assert low_contrast_texts(page) == []
            button = page.get_by_role("button", name="Theme: auto")
            for _ in range(1 if scheme == "dark" else 2):
                page.get_by_role("button", name=re.compile("^Theme")).click()
            expect(button).to_have_count(0)
            other = page.evaluate(ground)
            assert other != colours[-1]
            page.reload()
            assert page.evaluate(ground) == other  # it is remembered
            seen.check()
    assert colours[0] != colours[1]


@pytest.mark.parametrize("decisions", [0, 1, 2, 700])
def test_any_number_of_decisions_on_a_phone_and_a_desk(
    browser: Browser, service: Service, name: str, decisions: int
) -> None:
    shop = Shop(service, name)
    first = [shop.decide_many(decisions)[0]["id"]] if decisions else []
    for options in ({"viewport": PHONE}, {}):
        with recorded_page(browser, service.url, **options) as seen:
            for hash_ in ("#/", f"#/d/{name}", *(f"#/d/{name}/decisions/{id_}" for id_ in first)):
                page = seen.open(hash_)
                expect(page.get_by_text("live, updated")).to_be_visible()
                page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                page.wait_for_timeout(100)
                assert overflow_width(page) <= 0
                assert overlapping_labels(page) == []
                assert unnamed_elements(page) == []
                unscoped = page.locator("th:not([scope])").count()
                assert unscoped == 0
                assert page.locator("table:not(:has(caption))").count() == 0
            seen.check()


def test_the_numbers_behind_a_chart(browser: Browser, service: Service, name: str) -> None:
    shop = Shop(service, name)
    made = shop.decide_many(3)
    with recorded_page(browser, service.url) as seen:
        page = seen.open(f"#/d/{name}")
        bank = page.locator("figure", has=page.get_by_role("slider", name=re.compile("^Bank")))
        bank.get_by_text("Numbers").click()
        rows = bank.locator("tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text(f"{made[-1]['bank']:.4f}")
        reader = page.get_by_role("slider", name="Bank: read values with the arrow keys")
        reader.focus()
        page.keyboard.press("Home")
        expect(reader).to_have_attribute(
            "aria-valuetext", re.compile(f"Decision 1, .*{made[0]['bank']:.3f}")
        )
        page.keyboard.press("ArrowRight")
        expect(bank.locator(".readout")).to_contain_text("Decision 2")
        seen.check()


def test_charts_count_decisions_and_name_their_entries(
    browser: Browser, service: Service, name: str
) -> None:
    """Outcomes are entries of the journal, too: they count in ids, not in charts."""
    shop = Shop(service, name)
    for made in shop.decide_many(3):
        shop.observe(made["id"], 0.6)
    last = shop.decide()
    with recorded_page(browser, service.url) as seen:
        page = seen.open(f"#/d/{name}")
        readouts = page.locator("figure.chart .readout:visible")
        expect(readouts.first).to_be_visible()
        for n in range(readouts.count()):
            expect(readouts.nth(n)).to_contain_text("Latest: Decision 4, entry 7,")
        assert last["id"].startswith(f"{name}-7")
        ticks = page.locator("figure.chart svg.plot:visible").first.locator(
            "text.tick.middle:not(.faint)"
        )
        assert max(int(text) for text in ticks.all_text_contents()) <= 4
        seen.check()


def test_strangers_texts_stay_texts(browser: Browser, service: Service, name: str) -> None:
    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    shop = Shop(service, name)
    made = shop.decide("<b>r</b>", context={evil: evil})
    with recorded_page(browser, service.url, viewport=PHONE) as seen:
        page = seen.open(f"#/d/{name}")
        page.locator("summary", has_text="pending outcome").click()
        expect(page.get_by_text("<b>r</b>")).to_be_visible()
        page = seen.open(f"#/d/{name}/decisions/{made['id']}")
        page.get_by_text("Context", exact=True).click()
        expect(page.locator("pre")).to_contain_text("<img src=x onerror=")
        assert page.locator("main img, main script, main b").count() == 0
        assert overflow_width(page) <= 0
        page.goto(f"{service.url}/#/d/%3Cimg%20src=x%3E/%ff")
        expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
        seen.check()


def test_long_names_break_and_words_beside_them_do_not(
    browser: Browser, service: Service, name: str
) -> None:
    long = f"{name}-{'of-a-branch-' * 10}"[:100]
    shop = Shop(service, long)
    shop.decide("r" * 100, labels=["without-spaces-" + "x" * 100, "a label of several words, " * 4])
    lines = """cell => {
        const range = document.createRange();
        range.selectNodeContents(document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode());
        return range.getClientRects().length;
    }"""
    for options in ({}, {"viewport": {"width": 920, "height": 800}}, {"viewport": PHONE}):
        with recorded_page(browser, service.url, **options) as seen:
            page = seen.open(f"#/d/{long}")
            row = page.locator(".decisions tbody tr").first
            expect(row).to_be_visible()
            assert overflow_width(page) <= 0
            for cell in (row.locator(":scope > *").first, row.locator("[data-outcome]")):
                assert cell.evaluate(lines) == 1, cell.inner_text()
            seen.check()


def test_many_candidates(browser: Browser, service: Service, name: str) -> None:
    shop = Shop(service, name)
    pool = np.column_stack([np.ones(1000), np.linspace(-1.0, 1.0, 1000)]).tolist()
    made = shop.decide(candidates=pool)
    with recorded_page(browser, service.url) as seen:
        page = seen.open(f"#/d/{name}/decisions/{made['id']}")
        rows = page.get_by_role("table", name=re.compile("Every candidate")).locator("tbody tr")
        expect(rows).to_have_count(40)
        page.get_by_role("button", name="Show all 1,000 candidates").click()
        expect(rows).to_have_count(1000)
        expect(page.locator("svg.intervals .row-name").first).to_contain_text("★")
        seen.check()


def test_an_ungated_policy_certifies_nothing(browser: Browser, service: Service, name: str) -> None:
    shop = Shop(service, name, policy="linucb", reserve=0.0)
    made = shop.decide()
    with recorded_page(browser, service.url) as seen:
        page = seen.open(f"#/d/{name}")
        expect(page.get_by_text("No gate: nothing is certified.").first).to_be_visible()
        expect(page.locator(".figures").get_by_text("no gate")).to_be_visible()
        page = seen.open(f"#/d/{name}/decisions/{made['id']}")
        expect(page.get_by_role("heading", name=re.compile("No gate"))).to_be_visible()
        seen.check()


def test_an_alarm_is_seen_and_announced(browser: Browser, service: Service, name: str) -> None:
    shop = Shop(service, name, policy="reserve-c4b+")
    first = shop.decide()
    with recorded_page(browser, service.url) as seen:
        page = seen.open(f"#/d/{name}")
        expect(page.locator(".title")).to_contain_text("OK")
        shop.observe(first["id"], 1e4)
        for made in shop.decide_many(20):
            shop.observe(made["id"], -1e4)
        expect(page.locator(".title")).to_contain_text("Alarm")
        expect(page).to_have_title(f"!! {name} - Reserve-C4B")
        expect(page.locator("#announcer")).to_have_text(f"{name} is now: Alarm")
        expect(page.locator(".reasons")).to_contain_text("play the baseline")
        expect(page.get_by_text("certificates are void, and nothing is promised")).to_be_visible()
        contrast = page.get_by_role("figure").filter(has_text="estimated, ○ certified")
        expect(contrast).to_contain_text("but these certificates are void now")  # as above, so below
        expect(page.get_by_text("certain to earn")).to_have_count(0)
        page = seen.open(f"#/d/{name}/decisions/{shop.decide()['id']}")
        expect(page.get_by_text("void: an alarm is active")).to_be_visible()
        expect(page.get_by_text("would be the certified interval without the alarm")).to_be_visible()
        seen.check()


def test_a_hidden_page_asks_nothing(browser: Browser, service: Service, name: str) -> None:
    Shop(service, name).decide()
    with recorded_page(browser, service.url) as seen:
        page = seen.open(f"#/d/{name}")
        expect(page.get_by_text("live, updated")).to_be_visible()
        turn = "h => { Object.defineProperty(document, 'hidden', {value: h, configurable: true});"
        turn += "document.dispatchEvent(new Event('visibilitychange')); }"
        page.evaluate(turn, True)
        page.wait_for_timeout(300)
        before = len(seen.requests)
        page.wait_for_timeout(3000)
        assert len(seen.requests) == before
        page.evaluate(turn, False)
        page.wait_for_timeout(500)
        assert len(seen.requests) > before
        seen.check()


def test_nothing_there_then_lost_then_back_with_a_broken_one(browser: Browser, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/own.db"
    with serving(store, tmp_path / "log") as service, recorded_page(browser, service.url) as seen:
        page = seen.open()
        page.clock.install()
        expect(page.get_by_role("heading", name="No deployment yet")).to_be_visible()
        expect(page.get_by_text(f"curl -X PUT '{service.url}/v1/deployments/homepage'")).to_be_visible()
        expect(page.get_by_text(f"c4b deploy create {store} homepage")).to_be_visible()
        shop = Shop(service, "homepage")
        page.get_by_role("link", name="homepage", exact=True).click()
        expect(page.get_by_role("heading", name="No decision yet")).to_be_visible()
        expect(page.get_by_text("curl -X POST").last).to_contain_text(
            "/v1/deployments/homepage/decisions"
        )
        Shop(service, "second").decide()
        shop.decide()
        expect(page.get_by_role("heading", name="State of the guarantee")).to_be_visible()

        service.stop()
        banner = page.locator("#banner")
        expect(banner).to_contain_text(
            re.compile(r"Connection lost, retrying in \d+ s, last update \d\d:\d\d:\d\d")
        )
        expect(
            page.get_by_role("heading", name="State of the guarantee")
        ).to_be_visible()  # what is known stays
        page.clock.pause_at(page.evaluate("Date.now()") + 5_000)  # now it does not retry by itself
        button = page.get_by_role("button", name="Retry now")
        expect(button).to_be_visible()
        with sqlite3.connect(tmp_path / "own.db") as database:
            database.execute("UPDATE c4b_journal SET payload = zeroblob(40) WHERE deployment = 2")
        database.close()
        back = Service(store, tmp_path / "log", port=service.port)
        try:
            expect(button).to_be_visible()
            button.click()
            expect(banner).to_be_hidden()
            page.clock.resume()
            expect(page.get_by_text("live, updated")).to_be_visible()
            page.get_by_role("link", name="Deployments").click()
            broken = page.get_by_role("row").filter(has=page.get_by_role("link", name="second"))
            expect(broken).to_contain_text("Cannot be read")
            expect(page).to_have_title("!! Deployments - Reserve-C4B")
            seen.check((REFUSED,))
        finally:
            back.stop()


def test_the_page_is_small_and_its_own() -> None:
    files = [path for path in FILES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
    for path in files:
        text = path.read_text()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text), path
        assert not re.search(r"\sstyle=|<style|\son\w+=\"", text), path
