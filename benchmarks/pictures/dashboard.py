"""The dashboard with the demo's shop, and why one of its decisions was made: two pictures.

    python benchmarks/pictures/dashboard.py

Starts ``c4b demo`` and opens its pages in Chromium. What visitors do is random, so the numbers differ
from run to run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from drawing import BENCHMARKS, IMAGES

sys.path.insert(0, str(BENCHMARKS.parent / "tests"))
from support.browser import chromium, recorded_page

DECISIONS = 400
"""On a page of the shop, before its picture is taken."""
ENOUGH = """wanted => {
  const said = document.querySelector(".earned + .aside")?.textContent.match(/([\\d,]+) decisions/);
  return said && Number(said[1].replace(",", "")) >= wanted;
}"""
LONGEST = 300_000
"""Milliseconds until then."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/demo.db"
        command = [
            str(Path(sys.executable).parent / "c4b"),
            "demo",
            "--port",
            "0",
            "--pace",
            "0.05",
            "--store",
            store,
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as demo:
            try:
                take(address(demo))
            finally:
                demo.terminate()


def address(demo: subprocess.Popen[str]) -> str:
    """Where the demo says that it is."""
    assert demo.stdout is not None
    for line in demo.stdout:
        if found := re.search(r"http://[\w.]+:\d+", line):
            return found[0]
    raise SystemExit("the demo ended before it said where it is")


def take(url: str) -> None:
    with chromium() as browser:
        with recorded_page(browser, url, viewport={"width": 1200, "height": 1130}) as seen:
            page = seen.open("#/d/homepage")
            page.wait_for_function(ENOUGH, arg=DECISIONS, timeout=LONGEST)
            save(page.screenshot(), "dashboard")
        with recorded_page(browser, url, viewport={"width": 1100, "height": 1000}) as seen:
            page = seen.open("#/d/checkout")
            known = page.locator("table.decisions tbody tr", has_not_text="pending").first
            known.get_by_role("link").first.click()
            page.locator("svg").last.wait_for()
            page.wait_for_timeout(1000)
            save(page.screenshot(), "why")


def save(picture: bytes, name: str) -> None:
    path = IMAGES / f"{name}.png"
    path.write_bytes(picture)
    print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    main()
