"""Settings of one service, passed from ``c4b serve`` to its worker processes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from c4b import _validate
from c4b.deployment import Limits
from c4b.errors import InvalidInput

SETTINGS_VARIABLE = "C4B_SERVICE"
"""Environment variable that holds the settings as JSON. The settings are not passed on the command line,
because the store's address may contain a password and every user of a machine can read command lines."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one service: its store, and the limits on requests."""

    store: str
    """sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"""
    body_bytes: int = 8_388_608
    """Largest request body, in bytes."""
    dimension: int = 1_000
    """Largest number of features of a deployment created over HTTP. State grows with its square."""
    seconds: float = 30.0
    """Time limit of one request, including the time in which its body arrives."""
    connections: int = 16
    """Most connections of one worker to the store."""
    failures_per_minute: int = 60
    """Requests of one address without a valid token that a worker answers with 401; the next get 429."""
    witness: str | None = None
    """File to which the ends of journals are written; see ``WitnessWriter``."""
    witness_seconds: float = 60.0
    """Seconds between two witnesses."""
    limits: Limits = field(default_factory=lambda: Limits(candidates=1_000, batch=1_000))
    """Limits of every deployment that the service opens."""

    def __post_init__(self) -> None:
        _validate.count("body_bytes", self.body_bytes, 1024, "must be a whole number of at least 1024")
        _validate.count("dimension", self.dimension, 1, "must be a whole number of at least 1")
        minimum = "must be a whole number of at least 1"
        _validate.count("failures_per_minute", self.failures_per_minute, 1, minimum)
        _validate.count("connections", self.connections, 1, "must be a whole number of at least 1")
        for name in ("seconds", "witness_seconds"):
            _validate.positive(name, getattr(self, name), "must be a positive number of seconds")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        values: dict[str, Any] = json.loads(text)
        return cls(**{**values, "limits": Limits(**values["limits"])})

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the settings that ``c4b serve`` set for its workers."""
        text = os.environ.get(SETTINGS_VARIABLE)
        if text is None:
            names = ", ".join(f.name for f in fields(cls))
            raise InvalidInput(
                SETTINGS_VARIABLE, text, f"must be JSON with {names}; start with `c4b serve`"
            )
        return cls.from_json(text)
