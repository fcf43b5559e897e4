"""A simulated shop that sends traffic to a service, for ``c4b demo``."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c4b.client.client import Client
from c4b.errors import C4BError
from c4b.evidence.model import LinearModel
from c4b.service.monitoring.request_log import print_notice

Array = NDArray[np.float64]

MODEL = LinearModel(dim=5, noise=0.3, norm_bound=1.5)
THETA = np.array([1.0, 0.6, 0.0, 0.0, 0.0])
BASELINE = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
PAGES = ("homepage", "checkout", "search")
ITEMS = (
    *("espresso machine", "hand grinder", "gooseneck kettle", "filter papers", "scale", "milk frother"),
    *("travel mug", "moka pot", "French press", "cold brew jar", "barista course", "descaler"),
    *("house blend", "single origin", "decaf", "cold brew pack", "syrup", "oat milk"),
    *("gift card", "tasting set", "cup set", "tamper", "knock box", "cleaning brush"),
)
"""What the shop offers, the same on all pages."""
BURST = 300
"""Rounds at full speed, before rounds come at the chosen pace."""
DRIFT = 180
"""Round after which the parameter of the search page changes, which no certificate covers."""


@dataclass
class Shop:
    """Three pages: one with good history, one with history of the baseline only, one that drifts."""

    client: Client
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    rounds: int = 0
    catalogue: Array = field(init=False)
    """Directions of the items' features (24, 4)."""
    unreported: dict[str, list[tuple[str, float]]] = field(
        default_factory=lambda: {page: [] for page in PAGES}
    )

    def __post_init__(self) -> None:
        self.catalogue = self.rng.normal(size=(len(ITEMS), 4))

    def create_pages(self) -> None:
        """Create the pages and give them their history."""
        settings: dict[str, dict[str, Any]] = {
            "homepage": {"policy": "reserve-c4b+", "reserve": 2.0},
            "checkout": {"policy": "refresh", "reserve": 0.5},
            "search": {"policy": "reserve-c4b+", "reserve": 1.0},
        }
        for page, options in settings.items():
            self.client.create(page, MODEL, **options)
            if self.client.deployment(page).state.rounds:
                continue  # the store has these pages from an earlier run
            rows = np.tile(BASELINE, (20, 1)) if page == "checkout" else self._pool(1.0)[:20]
            rewards = rows @ THETA + 0.3 * self.rng.normal(size=20)
            self.client.learn(page, rows, rewards, request_id="history")

    def serve_visitors(self) -> None:
        """Serve one visitor on each page. Most rewards are reported later, in another order."""
        self.rounds += 1
        for page in PAGES:
            pool = self._pool(0.8 if page == "homepage" else 0.4)
            visitor = {"visitor": f"v-{self.rounds}", "page": page}
            decision = self.client.decide(page, pool, BASELINE, context=visitor, labels=ITEMS)
            played = BASELINE if decision.action is None else pool[decision.action]
            drifted = page == "search" and self.rounds > DRIFT
            mean = float(played @ (THETA * [1.0, -3.0, 1.0, 1.0, 1.0] if drifted else THETA))
            unreported = self.unreported[page]
            unreported.append((decision.id, mean + 0.3 * float(self.rng.normal())))
            while len(unreported) > 12 or (unreported and self.rng.random() < 0.45):
                chosen = int(self.rng.integers(len(unreported)))
                self.client.observe(page, *unreported.pop(chosen))

    def _pool(self, spread: float) -> Array:
        """Every item for one visitor: what it is, and in part who the visitor is."""
        directions = self.catalogue + self.rng.normal(size=self.catalogue.shape)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return np.column_stack([np.ones(len(directions)), spread * directions])


def send_traffic(url: str, token: str | None, stop: threading.Event, pace: float) -> None:
    """Send traffic until ``stop`` is set: a burst, then one visitor a page every ``pace`` seconds."""
    try:
        with Client(url, token, attempts=200) as client:
            shop = Shop(client)
            shop.create_pages()
            while not stop.wait(0.0 if shop.rounds < BURST else pace):
                shop.serve_visitors()
    except C4BError as error:
        if not stop.is_set():
            print_notice(f"c4b: the simulated shop has stopped: {error}")
