"""Recompute a journal independently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Report:
    clean: bool


def run(
    connection: Connection, name: str, sample: int, progress: Callable[[int, int], None] | None
) -> Report:
    raise NotImplementedError
