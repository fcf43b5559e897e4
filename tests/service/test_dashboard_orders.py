"""Orders on the dashboard, in a real browser: the banner for everybody, the buttons for an admin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from c4b import Client, LinearModel
from support.browser import (
    PHONE,
    chromium,
    low_contrast_texts,
    overflow_width,
    recorded_page,
    unnamed_elements,
)
from support.service_process import Service
from support.token_service import TokenService

MODEL = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
ROUND = ([[1.0, 0.1], [1.0, -0.3]], [1.0, 0.0])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def test_freeze_thaw_ramp_and_close_by_button(browser: Browser, service: Service, name: str) -> None:
    with Client(service.url) as client:
        client.create(name, MODEL, reserve=0.5, mode="shadow")
        client.decide(name, *ROUND)
        with recorded_page(browser, service.url) as seen:
            page = seen.open(f"#/d/{name}")
            expect(page.get_by_text("Shadow mode: decisions are made and recorded")).to_be_visible()
            page.get_by_text("Freeze, ramp, close").click()
            page.get_by_role("button", name="Go live").click()
            expect(page.get_by_text("Enter a reason first")).to_be_visible()
            page.get_by_label("Reason").fill("it looks right")
            page.get_by_role("button", name="Go live").click()
            expect(page.get_by_text("Shadow mode: decisions are made and recorded")).to_be_hidden()
            expect(page.get_by_role("button", name="Go live")).to_be_hidden()

            page.get_by_label("Reason").fill("the first week")
            page.get_by_label("in percent").fill("12.5")
            page.get_by_role("button", name="Set the ramp").click()
            expect(page.get_by_text("at most 12.5 % of the rounds")).to_be_visible()

            page.get_by_label("Reason").fill("checkout is down")
            page.get_by_role("button", name="Freeze").click()
            expect(page.get_by_text("Frozen: only the incumbent is played.")).to_be_visible()
            assert client.deployment(name).state.mode == "frozen"
            page.set_viewport_size(PHONE)
            assert overflow_width(page) == 0
            assert not low_contrast_texts(page)
            assert not unnamed_elements(page)
            page.get_by_label("Reason").fill("it is up")
            page.get_by_role("button", name="Thaw").click()
            expect(page.get_by_role("button", name="Freeze")).to_be_visible()

            page.get_by_label("Reason").fill("replaced")
            page.get_by_role("button", name="Close permanently").click()  # the question is answered: no
            assert client.deployment(name).state.mode == "ramp"
            page.once("dialog", lambda dialog: dialog.accept())
            page.get_by_role("button", name="Close permanently").click()
            expect(page.get_by_text("Closed: it makes no more decisions.")).to_be_visible()
            expect(page.get_by_text("Freeze, ramp, close")).to_be_hidden()
            seen.check()


def test_only_an_admin_sees_the_buttons(browser: Browser, token_service: TokenService, name: str) -> None:
    with Client(token_service.service.url, token_service.admin) as client:
        client.create(name, MODEL)
        client.freeze(name, "stop", by="ann")
    for token, shown in ((token_service.read, False), (token_service.admin, True)):
        with recorded_page(browser, token_service.service.url) as seen:
            page = seen.open(f"#/d/{name}")
            page.get_by_label("Token").fill(token)
            page.keyboard.press("Enter")
            expect(page.get_by_text("Frozen by ann (token")).to_be_visible()
            expect(page.get_by_text("Freeze, ramp, close")).to_be_visible(visible=shown)
