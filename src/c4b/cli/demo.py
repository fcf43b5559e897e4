"""A simulated shop that sends traffic to a service, so that a newcomer sees it alive."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c4b.client.client import Client
from c4b.errors import C4BError
from c4b.evidence.model import LinearModel
from c4b.service.monitoring import request_log as logs

Array = NDArray[np.float64]

MODEL = LinearModel(dim=5, noise=0.3, norm_bound=1.5)
THETA = np.array([1.0, 0.6, 0.0, 0.0, 0.0])
BASELINE = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
PAGES = ("homepage", "checkout", "search")
BURST = 300
"""Rounds at full speed before the shop goes on at a human pace."""
DRIFT = 180
"""Round after which taste on the search page turns round, which no certificate covers."""


@dataclass
class Shop:
    """Three pages: one that goes well, one that begins with little history, one whose world changes."""

    client: Client
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    rounds: int = 0
    late: dict[str, list[tuple[str, float]]] = field(default_factory=lambda: {page: [] for page in PAGES})

    def build(self) -> None:
        """Create the pages and give them their history."""
        options: dict[str, dict[str, Any]] = {
            "homepage": {"policy": "reserve-c4b+", "reserve": 2.0},
            "checkout": {"policy": "refresh", "reserve": 0.5},
            "search": {"policy": "reserve-c4b+", "reserve": 1.0},
        }
        for page, chosen in options.items():
            self.client.create(page, MODEL, **chosen)
            if self.client.deployment(page).state.rounds:
                continue  # this store has seen the shop before
            rows = np.tile(BASELINE, (20, 1)) if page == "checkout" else self._pool(20, 1.0)
            rewards = rows @ THETA + 0.3 * self.rng.normal(size=20)
            self.client.learn(page, rows, rewards, request_id="history")

    def serve(self) -> None:
        """One visitor on each page; most rewards come a little later, in another order."""
        self.rounds += 1
        for page in PAGES:
            pool = self._pool(24, 0.8 if page == "homepage" else 0.4)
            visitor = {"visitor": f"v-{self.rounds}", "page": page}
            made = self.client.decide(page, pool, BASELINE, context=visitor)
            played = BASELINE if made.action is None else pool[made.action]
            drifted = page == "search" and self.rounds > DRIFT
            mean = float(played @ (THETA * [1.0, -3.0, 1.0, 1.0, 1.0] if drifted else THETA))
            late = self.late[page]
            late.append((made.id, mean + 0.3 * float(self.rng.normal())))
            while len(late) > 12 or (late and self.rng.random() < 0.45):
                self.client.observe(page, *late.pop(int(self.rng.integers(len(late)))))

    def _pool(self, size: int, spread: float) -> Array:
        directions = self.rng.normal(size=(size, 4))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return np.column_stack([np.ones(size), spread * directions])


def trade(url: str, token: str | None, stop: threading.Event, pace: float) -> None:
    """Send traffic until ``stop``: a burst, then a visitor every ``pace`` seconds."""
    try:
        with Client(url, token, attempts=200) as client:
            shop = Shop(client)
            shop.build()
            while not stop.wait(0.0 if shop.rounds < BURST else pace):
                shop.serve()
    except C4BError as error:
        if not stop.is_set():
            logs.plainly(f"c4b: the simulated shop has stopped: {error}")
