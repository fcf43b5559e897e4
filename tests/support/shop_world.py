"""A small world for deployments: three features, one incumbent, a few rivals."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import create_engine, text

from c4b import Deployment, LinearModel
from c4b.deployment.transactions.state import State
from c4b.evidence import Evidence
from c4b.journal.entries import GENESIS, Entry, pack
from c4b.journal.journal import Journal
from c4b.journal.memory_backend import MemoryBackend
from c4b.journal.sql.sql_backend import SqlBackend
from c4b.journal.sql.sql_store import Store
from c4b.policies.compiled.compiled_gate import CompiledGate
from support.same_state import same_bits

Array = NDArray[np.float64]

MODEL = LinearModel(dim=3, noise=0.1, norm_bound=1.0)
THETA = np.array([0.6, 0.3, -0.2])
BASELINE = np.array([1.0, 0.0, 0.0])


def create(url: str, name: str = "shop", **options: Any) -> Deployment:
    return Deployment.create(
        url, name, MODEL, **{"policy": "refresh", "alpha": 0.1, "reserve": 0.5, **options}
    )


def rivals(rng: np.random.Generator, size: int = 4) -> Array:
    return BASELINE + 0.2 * rng.normal(size=(size, 3))


def outcome(candidates: Array, action: int | None, rng: np.random.Generator) -> float:
    played = BASELINE if action is None else candidates[action]
    return float(played @ THETA + 0.1 * rng.normal())


def trade(dep: Deployment, rounds: int, seed: int = 0, ids: str = "") -> None:
    """Decide, and report about half of the outcomes late and out of order."""
    rng, late = np.random.default_rng(seed), []
    for n in range(rounds):
        candidates = rivals(rng)
        made = dep.decide(candidates, BASELINE, request_id=f"{ids}{n}" if ids else None)
        late.append((made.id, outcome(candidates, made.action, rng)))
        if rng.random() < 0.7:
            dep.observe(*late.pop(int(rng.integers(len(late)))))


def replayed(dep: Deployment) -> State:
    """The state from the first entry on, without any snapshot."""
    state = State(dep.configuration)
    with dep._transactor.backend.reading(dep.name) as transaction:
        state.replay(Journal(transaction).tail(-1, GENESIS))
    return state


def seen(dep: Deployment) -> State:
    """The state that this object holds, brought up to date."""
    dep.state()
    state = dep._transactor._state
    assert state is not None
    return state


def compiled(state: State) -> CompiledGate:
    """The gate of a state whose policy is of the compiled family."""
    assert isinstance(state.gate, CompiledGate)
    return state.gate


def evidence_of(dep: Deployment) -> Evidence:
    """The confidence set that this object holds, brought up to date."""
    return compiled(seen(dep)).evidence


def url_of(dep: Deployment) -> str:
    """The URL that the object was opened with."""
    backend = dep._transactor.backend
    if isinstance(backend, MemoryBackend):
        return backend.url
    return store_of(dep).url.render_as_string(hide_password=False)


def store_of(dep: Deployment) -> Store:
    """The SQL store of a deployment that is in one."""
    backend = dep._transactor.backend
    assert isinstance(backend, SqlBackend)
    return backend.store


def in_agreement(dep: Deployment) -> bool:
    """This object's state, that of a fresh opening and full replay: the same bits."""
    with Deployment.open(url_of(dep), dep.name) as other:
        full = replayed(dep)
        return same_bits(seen(dep), full) and same_bits(seen(other), full)


def sql(url: str, statement: str, **values: Any) -> list[Any]:
    """Behind the package's back."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.begin() as connection:
            done = connection.execute(text(statement), values)
            return list(done) if done.returns_rows else []
    finally:
        engine.dispose()


def entries_of(dep: Deployment) -> list[Entry]:
    """The whole journal."""
    with dep._transactor.backend.reading(dep.name) as transaction:
        return list(Journal(transaction).tail(-1, GENESIS))


def forge(
    dep: Deployment, number: int, change: Callable[[dict[str, Any], dict[str, Array]], None]
) -> None:
    """Change one entry and hash everything after it again, as somebody with access to the store could."""
    url, hash_ = url_of(dep), GENESIS
    update = "UPDATE c4b_journal SET payload = :payload, previous = :previous WHERE seq = :seq"
    for entry in entries_of(dep):
        fields, arrays = entry.unpack()
        if entry.seq == number:
            change(fields, arrays)
        forged = entry._replace(payload=pack(fields, arrays), previous=hash_)
        hash_ = forged.hash()
        sql(url, update, payload=forged.payload, previous=forged.previous, seq=forged.seq)
    sql(url, "UPDATE c4b_deployment SET head_hash = :hash", hash=hash_)


def fork(child: Callable[[], None]) -> int:
    """Run ``child`` in a process of its own; its exit code is 0 unless it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: BLAS has some, but none holds a lock here
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        child()
        code = 0
    finally:
        os._exit(code)


def waited(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
