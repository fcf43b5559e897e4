"""Debian's Chromium, headless, with a record of console messages and requests of a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 800}
_REPORT_POLICY_VIOLATIONS = (
    "document.addEventListener('securitypolicyviolation', e => console.error('CSP', e.violatedDirective))"
)
_ROLES_WITH_NAMES = ("button", "link", "image", "img", "slider", "textbox", "table", "figure", "region")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser. A missing browser is an error, not a reason to skip."""
    executable = shutil.which("chromium")
    assert executable, "the dashboard's tests need Chromium: install Debian's package `chromium`"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class RecordedPage:
    """A page with its console messages and its requests."""

    page: Page
    url: str
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, hash_: str = "#/") -> Page:
        self.page.goto("about:blank")  # a new hash alone would not load the page again
        self.page.goto(f"{self.url}/{hash_}")
        return self.page

    def check(self, expected: tuple[str, ...] = ()) -> None:
        """No error in the console, no policy violation, no request to another server.

        expected: parts of messages that the test provokes.
        """
        assert [text for text in self.messages if not any(part in text for part in expected)] == []
        elsewhere = [
            url for url in self.requests if not url.startswith((self.url, "about:", "blob:", "data:"))
        ]
        assert elsewhere == []


@contextmanager
def recorded_page(browser: Browser, url: str, **options: Any) -> Iterator[RecordedPage]:
    """Open a page in a new browser context, without cookies and storage."""
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    context.set_default_timeout(15_000)
    context.add_init_script(_REPORT_POLICY_VIOLATIONS)
    page = context.new_page()
    seen = RecordedPage(page, url)
    page.on(
        "console",
        lambda said: seen.messages.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: seen.messages.append(f"uncaught: {error}"))
    page.on("request", lambda request: seen.requests.append(request.url))
    try:
        yield seen
    finally:
        context.close()


def unnamed_elements(page: Page) -> list[str]:
    """Roles of elements without a name in the browser's accessibility tree."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    roles = []
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        if (
            not node["ignored"]
            and role.lower() in _ROLES_WITH_NAMES
            and not node.get("name", {}).get("value")
        ):
            roles.append(role)
    return roles


def overflow_width(page: Page) -> int:
    """Pixels by which the page is wider than the browser's window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def overlapping_labels(page: Page) -> list[str]:
    """Labels in charts that overlap or are cut off."""
    return list(page.evaluate(_OVERLAPPING_LABELS))


_OVERLAPPING_LABELS = """() => {
  const problems = [];
  for (const plot of document.querySelectorAll("svg.plot")) {
    const frame = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll("text")];
    const labels = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
    labels.forEach(([text, box], n) => {
      if (!box.width) return;
      if (box.left < frame.left - 1 || box.right > frame.right + 1) problems.push(`${text} is cut off`);
      if (box.top < frame.top - 1 || box.bottom > frame.bottom + 1) problems.push(`${text} is cut off`);
      for (const [other, its] of labels.slice(n + 1)) {
        const wide = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const high = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (wide > 1 && high > 4) problems.push(`${text} over ${other}`);
      }
    });
  }
  return problems;
}"""


def low_contrast_texts(page: Page) -> list[str]:
    """Texts whose contrast with their background is below 4.5 : 1."""
    return list(page.evaluate(_LOW_CONTRAST_TEXTS))


_LOW_CONTRAST_TEXTS = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => {
      const s = v / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backgroundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const rgb = numbers(getComputedStyle(at).backgroundColor);
      if (rgb.length === 3 || rgb[3] === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const problems = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim();
    const element = walk.currentNode.parentElement;
    if (!text || !element.checkVisibility() || element.closest(".unseen, :disabled")) continue;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [luminance(numbers(drawn)), luminance(backgroundOf(element))].sort((x, y) => y - x);
    const pair = `${drawn} on ${backgroundOf(element)}`;
    if ((a + 0.05) / (b + 0.05) < 4.5) problems.push(`${text.slice(0, 40)}: ${pair}`);
  }
  return problems;
}"""
