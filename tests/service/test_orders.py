"""Orders, erasures and successors over HTTP and with the client."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from c4b import Client, LinearModel
from c4b.errors import DecisionsClosed, InvalidInput
from support.service_process import Service
from support.token_service import TokenService

MODEL = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
PAGE = (Path(__file__).parents[2] / "docs/rolling-out.md").read_text(encoding="utf-8")
ROUND = ([[1.0, 0.1], [1.0, -0.3]], [1.0, 0.0])


def test_the_whole_way(service: Service, name: str) -> None:
    with Client(service.url) as client:
        client.create(name, MODEL, reserve=0.5, mode="shadow", compress=True)
        made = client.decide(name, *ROUND, request_id="v-1", context={"user": "u-1"})
        assert (made.action, made.held) == (None, "shadow")
        client.observe(name, made.id, 0.5)
        assert client.deployment(name).state.mode == "shadow"
        assert client.go_live(name, "it looks right").state.mode == "live"
        assert client.ramp(name, 0.25, "first week", by="ann").state.orders[0].share == 0.25
        frozen = client.freeze(name, "checkout is down", by="ann").state
        assert (frozen.mode, frozen.health) == ("frozen", "attention")
        assert "checkout is down" in frozen.reasons[0]
        assert frozen.orders[0].by == "ann (the service, without a token)"
        assert client.decide(name, *ROUND).held == "frozen"
        client.thaw(name, "it is up")
        assert client.erase_context(name, "v-1") == 1
        assert client.explain(name, made.id).context_erased
        assert client.erase_contexts(name, datetime.now(UTC) + timedelta(days=1)) == 0
        with pytest.raises(InvalidInput, match="on a ramp"):
            client.successor(name, f"{name}-2", "a new model", by="ann")
        client.ramp(name, 1.0, "no complaints")
        new = client.successor(name, f"{name}-2", "a new model", by="ann")
        assert str(new.configuration.predecessor).startswith(f"{name}@")
        assert new.state.observations == 1
        closed = client.deployment(name).state
        assert (closed.mode, closed.health) == ("closed", "idle")
        assert "a new model" in closed.reasons[0]
        with pytest.raises(DecisionsClosed, match="a new model"):
            client.decide(name, *ROUND)
        assert client.audit(name).clean
        assert client.audit(f"{name}-2").clean
        with pytest.raises(InvalidInput, match="share"):
            client._order(f"{name}-2", "freeze", "no", None, 0.5)
        with pytest.raises(InvalidInput, match="either"):
            client._erase(name, {})


def test_metrics(service: Service, name: str) -> None:
    with Client(service.url) as client:
        client.create(name, MODEL, reserve=0.5)
        client.ramp(name, 0.25, "slowly")
        client.freeze(name, "stop")
    with service.http() as http:
        text = http.get("/metrics").text
    label = f'{{deployment="{name}"}}'
    for line in (
        f"c4b_frozen{label} 1.0",
        f"c4b_closed{label} 0.0",
        f"c4b_ramp_share{label} 0.25",
        f"c4b_held_decisions_total{label} 0.0",
    ):
        assert line in text


def test_the_request_of_the_page(service: Service, name: str) -> None:
    (body,) = re.findall(r"curl [^\n]*/orders[^\n]*\n  -d '([^']*)'", PAGE)
    with Client(service.url) as client, service.http() as http:
        client.create(name, MODEL)
        headers = {"Content-Type": "application/json"}
        sent = http.post(f"/v1/deployments/{name}/orders", content=body, headers=headers)
        assert sent.json()["state"]["mode"] == "frozen"


def test_the_token_is_recorded(token_service: TokenService, name: str) -> None:
    with Client(token_service.service.url, token_service.admin) as client:
        client.create(name, MODEL)
        order = client.freeze(name, "stop", by="ann").state.orders[0]
        assert order.by == f"ann (token {token_service.admin.split('_')[1]})"
        assert client.deployment(name).scope == "admin"
    with Client(token_service.service.url, token_service.read) as client:
        assert client.deployment(name).scope == "read"
