"""What one service was told at its start, handed to its worker processes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from c4b import _validate
from c4b.deployment import Limits
from c4b.errors import InvalidInput

VARIABLE = "C4B_SERVICE"
"""Environment variable with the settings as JSON: the store's address may hold a password, and what
stands on a command line everybody on the machine can read."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One service. Everything here bounds what a stranger can make it do."""

    store: str
    """sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"""
    body_bytes: int = 8_388_608
    """Bytes of one request."""
    dimension: int = 1_000
    """Features of a deployment created over HTTP: state grows with the square."""
    seconds: float = 30.0
    """For one request, its body included."""
    limits: Limits = field(default_factory=lambda: Limits(candidates=1_000, batch=1_000))
    """Of every deployment that the service opens."""

    def __post_init__(self) -> None:
        _validate.count("body_bytes", self.body_bytes, 1024, "must be a whole number of at least 1024")
        _validate.count("dimension", self.dimension, 1, "must be a whole number of at least 1")
        _validate.positive("seconds", self.seconds, "must be a positive number of seconds")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        told: dict[str, Any] = json.loads(text)
        return cls(**{**told, "limits": Limits(**told["limits"])})

    @classmethod
    def from_environment(cls) -> Settings:
        """As ``c4b serve`` left them for its workers."""
        text = os.environ.get(VARIABLE)
        if text is None:
            names = ", ".join(f.name for f in fields(cls))
            raise InvalidInput(VARIABLE, text, f"must be JSON with {names}; start with `c4b serve`")
        return cls.from_json(text)
