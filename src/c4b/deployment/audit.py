"""Recompute a journal independently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from c4b.deployment.journal import Journal


@dataclass(frozen=True, slots=True)
class Report:
    clean: bool


def run(journal: Journal, sample: int, progress: Callable[[int, int], None] | None) -> Report:
    raise NotImplementedError
