"""The client against a real service, and through a proxy that drops responses."""

from __future__ import annotations

import copy
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import c4b
from c4b import errors
from c4b.client import retrying_http
from support.service_process import Service, free_port, serving
from support.token_service import TokenService

MODEL = c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0)
POOL = np.array([[1.0, 0.1], [1.0, -0.3]])
BASELINE = np.array([1.0, 0.0])


@pytest.fixture
def client(service: Service) -> Iterator[c4b.Client]:
    with c4b.Client(service.url) as made:
        yield made


def test_the_whole_protocol(client: c4b.Client, name: str, tmp_path: Path) -> None:
    made = client.create(name, MODEL, policy="reserve-c4b+", reserve=2.0)
    assert made.configuration.policy == "reserve-c4b+"
    assert client.create(name, MODEL, policy="reserve-c4b+", reserve=2.0).state.seq == made.state.seq
    client.learn(name, POOL, np.array([0.6, 0.4]))
    first = client.decide(name, POOL, BASELINE, request_id="r", context={"user": "ü"})
    assert client.decide(name, POOL, BASELINE, request_id="r") == first
    assert first.is_baseline == (first.action is None)
    several = client.decide_many(name, [(POOL, BASELINE)] * 3)
    client.executed(name, several[0].id)
    client.observe(name, first.id, 0.5)
    client.observe_many(name, {several[0].id: 0.5})
    client.forget(name, several[1].id)
    assert [each.id for each in client.pending(name)] == [several[2].id]
    assert [line.id for line in client.decisions(name, page=2)] == [first.id, *(d.id for d in several)]
    why = client.explain(name, first.id)
    assert why.context == {"user": "ü"}
    assert len(why.candidates) == 2
    assert client.audit(name).clean
    client.export(name, tmp_path / "table.parquet")
    assert pl.read_parquet(tmp_path / "table.parquet").height == 4
    assert name in [state.name for state in client.deployments()]
    assert client.deployment(name).state.rounds == 4


def test_arrays_are_sent_as_the_library_takes_them(client: c4b.Client, name: str) -> None:
    client.create(name, MODEL, reserve=1.0)
    for pool in ([*POOL], tuple(POOL.astype(np.float32)), [[np.float32(1.0), 0.5]]):
        made = client.decide(name, pool, BASELINE)
        client.observe(name, made.id, np.float32(0.5))
    frame = pl.DataFrame(POOL, schema=["a", "b"])
    for bad in (
        np.ma.masked_array(POOL, mask=POOL < 0.0),
        [np.ma.masked_array(row, mask=row < 0.0) for row in POOL],
        POOL.astype("timedelta64[ns]"),
        {(1.0, 0.5)},
    ):
        with pytest.raises(errors.InvalidInput):
            client.decide(name, bad, BASELINE)
    with pytest.raises(errors.InvalidInput, match="same order: a, b"):
        client.decide(name, frame, frame[["b", "a"]][:1])
    with pytest.raises(errors.InvalidInput):
        client.observe(name, made.id, np.timedelta64(1, "s"))


def test_an_empty_table_of_other_features_is_refused_as_by_a_policy(
    client: c4b.Client, name: str
) -> None:
    client.create(name, MODEL, reserve=1.0)
    policy = c4b.Policy(model=MODEL)
    for none in (np.empty((0, 3)), np.empty((0, 2, 2)), pl.DataFrame({"a": [], "b": [], "c": []})):
        for decide in (policy.decide, lambda *given: client.decide(name, *given)):
            with pytest.raises(errors.InvalidInput):
                decide(none, BASELINE)
    for nothing in (np.empty((0, 2)), [], np.empty(0)):
        assert client.decide(name, nothing, BASELINE).is_baseline
        assert policy.decide(nothing, BASELINE).is_baseline


def test_a_told_mean(client: c4b.Client, name: str) -> None:
    made = client.create(name, MODEL, policy="clucb2t", reserve=1.0, baseline_floor=0.1)
    assert made.configuration.baseline_floor == 0.1
    assert client.create(name, MODEL, policy="clucb2t", reserve=1.0, baseline_floor=0.1) == made
    with pytest.raises(errors.InvalidInput, match="baseline_mean"):
        client.decide(name, POOL, BASELINE)
    first = client.decide(name, POOL, BASELINE, baseline_mean=0.5)
    assert client.explain(name, first.id).baseline_mean == 0.5
    several = client.decide_many(name, [c4b.Round(POOL, BASELINE, 0.5)] * 2)
    client.executed(name, several[0].id)
    assert client.audit(name).clean


def test_outcomes_come_with_the_next_decisions(client: c4b.Client, name: str) -> None:
    client.create(name, MODEL)
    first, second = client.decide_many(name, [(POOL, BASELINE)] * 2)
    (third,) = client.decide_many(name, [(POOL, BASELINE)], ["r-3"], outcomes={first.id: 0.5})
    again = client.decide_many(name, [(POOL, BASELINE)], ["r-3"], outcomes=[(first, 0.5)])
    assert again == [third]
    assert [each.id for each in client.pending(name)] == [second.id, third.id]
    with pytest.raises(errors.ContradictoryOutcome, match=r"outcomes\[0\].reward"):
        client.decide_many(name, [(POOL, BASELINE)], outcomes={first.id: 0.75})
    assert client.deployment(name).state.rounds == 3
    assert client.audit(name).clean


def test_a_loss_after_a_later_outcome_needs_an_assertion(client: c4b.Client, name: str) -> None:
    client.create(name, MODEL)
    first, second, third = client.decide_many(name, [(POOL, BASELINE)] * 3)
    client.observe(name, third.id, 0.5)
    with pytest.raises(errors.LaterOutcomeKnown, match="independent=True") as caught:
        client.forget(name, first.id)
    assert (caught.value.argument, caught.value.shown) == ("decision_id", repr(first.id))
    with pytest.raises(errors.LaterOutcomeKnown):
        client.executed(name, second.id, 1.1 * BASELINE)
    for independent in (True, False):  # the second time it is a repetition
        client.forget(name, first.id, independent=independent)
        client.executed(name, second.id, 1.1 * BASELINE, independent=independent)
    assert [each.id for each in client.pending(name)] == [second.id]
    assert client.audit(name).clean


def test_errors_are_the_librarys(client: c4b.Client, name: str) -> None:
    client.create(name, MODEL)
    made = client.decide(name, POOL, BASELINE, request_id="once")
    client.observe(name, made.id, 0.5)
    with pytest.raises(errors.ContradictoryOutcome, match=r"reward 0\.5 already") as caught:
        client.observe(name, made.id, 0.6)
    assert caught.value.argument == "reward"
    with pytest.raises(errors.ContradictoryRequest):
        client.decide(name, POOL + 1.0, BASELINE, request_id="once")
    with pytest.raises(errors.InvalidInput, match="baseline"):
        client.decide(name, POOL, [1.0])
    with pytest.raises(errors.InvalidInput, match=r"candidates\[0\]\[0\] = 'one'"):
        client.decide(name, [["one", 0.0]], BASELINE)
    with pytest.raises(errors.InvalidInput, match="JSON"):
        client.decide(name, [[float("nan"), 0.0]], BASELINE)
    with pytest.raises(errors.UnknownDecision):
        client.explain(name, f"{name}-77")
    with pytest.raises(errors.UnknownDeployment):
        client.deployment("nowhere")
    with pytest.raises(errors.NameTaken):
        client.create(name, MODEL, alpha=0.5)
    with pytest.raises(errors.HistoryClosed):
        client.learn(name, POOL, [0.5, 0.5])
    with pytest.raises(errors.InvalidInput, match="http"):
        c4b.Client("127.0.0.1:8000")


def test_every_error_of_the_library_survives_the_wire() -> None:
    kinds = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.C4BError)]
    assert all(errors.named(errors.kind(kind)) is kind for kind in kinds)
    assert errors.named("no-such-error") is None


def test_no_token_and_a_wrong_one(token_service: TokenService) -> None:
    for token in (None, "c4b_0_0", token_service.revoked):
        with (
            c4b.Client(token_service.service.url, token) as client,
            pytest.raises(errors.ServiceRefused, match="token"),
        ):
            client.deployments()
    with (
        c4b.Client(token_service.service.url, token_service.read) as client,
        pytest.raises(errors.ServiceRefused, match="needs scope decide"),
    ):
        client.decide("mine", POOL, BASELINE)


class LossyProxy:
    """A proxy that forwards requests and drops the first ``drop`` responses."""

    def __init__(self, port: int, drop: int, closes: bool) -> None:
        self.drop, self.dropped, self._closes = drop, 0, closes
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(caller,), daemon=True).start()

    def _carry(self, caller: socket.socket) -> None:
        """Forward requests and responses piece by piece; close instead of a dropped response."""
        with caller, socket.create_connection(("127.0.0.1", self._port)) as service:
            threading.Thread(target=self._forward, args=(caller, service), daemon=True).start()
            while answer := service.recv(65536):
                if self.dropped < self.drop:
                    self.dropped += 1
                    if self._closes:
                        self.close()
                    break
                caller.sendall(answer)
            _shut_down(caller)
            _shut_down(service)

    def _forward(self, caller: socket.socket, service: socket.socket) -> None:
        with suppress(OSError):
            while request := caller.recv(65536):
                service.sendall(request)
        _shut_down(service)

    def close(self) -> None:
        _shut_down(self._listener)
        self._listener.close()


def _shut_down(connection: socket.socket) -> None:
    """End the connection, and wake a thread that waits on it, which closing alone does not."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def lossy_proxy(service: Service, drop: int, closes: bool = False) -> Iterator[LossyProxy]:
    made = LossyProxy(service.port, drop, closes)
    try:
        yield made
    finally:
        made.close()


def test_a_lost_answer_is_asked_for_again_and_nothing_is_done_twice(
    service: Service, client: c4b.Client, name: str
) -> None:
    client.create(name, MODEL, reserve=2.0)
    with lossy_proxy(service, 3) as proxy, c4b.Client(proxy.url) as client_behind_proxy:
        made = client_behind_proxy.decide(name, POOL, BASELINE)
        assert proxy.dropped == 3
    assert client.deployment(name).state.rounds == 1
    assert [line.id for line in client.decisions(name)] == [made.id]


def test_giving_up_says_what_is_known(
    service: Service, client: c4b.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrying_http, "_LONGEST_PAUSE", 0.01)
    client.create(name, MODEL)
    with lossy_proxy(service, 9) as proxy, c4b.Client(proxy.url, attempts=3) as client_behind_proxy:
        with pytest.raises(errors.ServiceUnavailable, match="may have been carried out"):
            client_behind_proxy.decide(name, POOL, BASELINE, request_id="mine")
        assert proxy.dropped == 3
    assert client.deployment(name).state.rounds == 1
    assert client.decide(name, POOL, BASELINE, request_id="mine").id.startswith(f"{name}-1-")
    with (
        c4b.Client(f"http://127.0.0.1:{free_port()}", attempts=2) as nobody,
        pytest.raises(
            errors.ServiceUnavailable, match=r"nobody .* 2 attempts .* nothing was sent"
        ) as caught,
    ):
        nobody.deployments()
    assert "carried out" not in str(caught.value)


def test_one_attempt_that_arrived_may_have_been_carried_out(
    service: Service, client: c4b.Client, name: str
) -> None:
    """The first response is dropped, then no connection is possible any more."""
    client.create(name, MODEL)
    with (
        lossy_proxy(service, 9, closes=True) as proxy,
        c4b.Client(proxy.url, attempts=3) as client_behind_proxy,
    ):
        with pytest.raises(errors.ServiceUnavailable, match=r"ConnectError.*may have been carried out"):
            client_behind_proxy.decide(name, POOL, BASELINE)
        assert proxy.dropped == 1
    assert client.deployment(name).state.rounds == 1


def test_a_service_that_comes_back(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/back.db"
    with serving(store, tmp_path / "log") as service, c4b.Client(service.url, attempts=100) as client:
        client.create("shop", MODEL)
        before = client.decide("shop", POOL, BASELINE)
        service.stop()
        answers = []
        asking = threading.Thread(
            target=lambda: answers.append(client.decide("shop", POOL, BASELINE)), daemon=True
        )
        asking.start()
        again = Service(store, tmp_path / "log2", port=service.port)
        try:
            asking.join(60.0)
            assert [each.receipt and each.receipt.seq for each in answers] == [2]
            assert client.explain("shop", before.id).bank == before.bank
        finally:
            again.stop()


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy])
def test_another_process_makes_its_own(how: Callable[[c4b.Client], object]) -> None:
    with (
        c4b.Client("http://127.0.0.1:1", token="secret") as client,
        pytest.raises(TypeError, match=r"holds connections .* Client\(URL, token=...\)") as caught,
    ):
        how(client)
    assert "secret" not in str(caught.value)
