"""Debian's Chromium, headless, with a witness: what a page said, asked for and was refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

_QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 800}
_REFUSED = (
    "document.addEventListener('securitypolicyviolation', e => console.error('CSP', e.violatedDirective))"
)
_NAMED = ("button", "link", "image", "img", "slider", "textbox", "table", "figure", "region")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; without one this is an error, because the page would not be tested at all."""
    found = shutil.which("chromium")
    assert found, "the dashboard's tests need Chromium: install Debian's package `chromium`"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=_QUIET)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Witness:
    """What happened on one page; ``expected`` are parts of messages that a test provokes."""

    page: Page
    url: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, hash_: str = "#/") -> Page:
        self.page.goto("about:blank")  # a new hash alone would not load the page again
        self.page.goto(f"{self.url}/{hash_}")
        return self.page

    def judge(self, expected: tuple[str, ...] = ()) -> None:
        """No error in the console, no violated policy, no request to anybody else."""
        assert [text for text in self.said if not any(part in text for part in expected)] == []
        elsewhere = [
            url for url in self.asked if not url.startswith((self.url, "about:", "blob:", "data:"))
        ]
        assert elsewhere == []


@contextmanager
def witness(browser: Browser, url: str, **options: Any) -> Iterator[Witness]:
    """A page of its own, as of a person who was never here."""
    context = browser.new_context(**{"viewport": DESK, **options})
    context.set_default_timeout(15_000)
    context.add_init_script(_REFUSED)
    page = context.new_page()
    seen = Witness(page, url)
    page.on(
        "console", lambda told: seen.said.append(told.text) if told.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: seen.said.append(f"uncaught: {error}"))
    page.on("request", lambda request: seen.asked.append(request.url))
    try:
        yield seen
    finally:
        context.close()


def nameless(page: Page) -> list[str]:
    """Roles of what a screen reader meets and cannot name, by the browser's own accessibility tree."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    found = []
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        if not node["ignored"] and role.lower() in _NAMED and not node.get("name", {}).get("value"):
            found.append(role)
    return found


def too_wide(page: Page) -> int:
    """Pixels by which the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def crowded(page: Page) -> list[str]:
    """Labels in charts that lie over each other or are cut off."""
    return list(page.evaluate(_CROWDED))


_CROWDED = """() => {
  const found = [];
  for (const plot of document.querySelectorAll("svg.plot")) {
    const frame = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll("text")];
    const labels = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
    labels.forEach(([text, box], n) => {
      if (!box.width) return;
      if (box.left < frame.left - 1 || box.right > frame.right + 1) found.push(`${text} is cut off`);
      if (box.top < frame.top - 1 || box.bottom > frame.bottom + 1) found.push(`${text} is cut off`);
      for (const [other, its] of labels.slice(n + 1)) {
        const wide = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const high = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (wide > 1 && high > 4) found.push(`${text} over ${other}`);
      }
    });
  }
  return found;
}"""


def faint(page: Page) -> list[str]:
    """Texts whose contrast with what is behind them is below 4.5 : 1."""
    return list(page.evaluate(_FAINT))


_FAINT = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => {
      const s = v / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const rgb = numbers(getComputedStyle(at).backgroundColor);
      if (rgb.length === 3 || rgb[3] === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim();
    const element = walk.currentNode.parentElement;
    if (!text || !element.checkVisibility() || element.closest(".unseen, :disabled")) continue;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(numbers(drawn)), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${text.slice(0, 40)}: ${drawn} on ${behind(element)}`);
  }
  return found;
}"""
