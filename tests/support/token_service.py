"""A service with tokens of every kind, and the simplest request bodies."""

from __future__ import annotations

from typing import Any, NamedTuple

from support.service_process import Service

BODY: dict[str, Any] = {
    "model": {"dim": 2, "noise": 0.1, "norm_bound": 1.0},
    "policy": "refresh",
    "alpha": 0.1,
    "reserve": 2.0,
}
ROUND: dict[str, Any] = {"candidates": [[1.0, 0.1], [1.0, -0.3]], "baseline": [1.0, 0.0]}


class TokenService(NamedTuple):
    service: Service
    read: str
    decide: str
    admin: str
    mine: str  # scope decide, for the deployment "mine" only
    revoked: str
    first_status: int  # status of its first response to a request under a host name of another machine
