"""A state as bytes, so that opening a long journal reads only its end. It is only a cache."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np

from c4b.deployment.configuration import Configuration
from c4b.deployment.downsampled_series import DownsampledSeries
from c4b.deployment.recent_requests import RecentRequests
from c4b.deployment.state import OpenDecision, State, durable_arrays
from c4b.journal.backend import JournalTransaction, StoredSnapshot
from c4b.policies import state_file
from c4b.policies.pending import REMEMBERED

KEPT = 2
"""Snapshots kept: the newest, and one in case it is damaged."""
_LENGTH = struct.Struct("<I")
_SERIES = "course"
"""Name of the series in a snapshot."""
_RECENT_REQUESTS = "requests"
"""Name of the last request ids in a snapshot."""
_LATEST = "latest"
"""Name of the last round whose reward was reported; see ``GateRun.restore``."""
_RECENT = {
    "outcomes.recent_round": np.full(REMEMBERED, -1, dtype=np.int64),
    "outcomes.recent_reward": np.full(REMEMBERED, np.nan),
}
"""``REMEMBERED_REPORTS`` of a state that has none."""


def due(state: State, last: int, every: int) -> bool:
    """Seldom enough that writing all pending decisions costs little for each entry."""
    return state.seq - last >= max(every, len(state.open))


def write(transaction: JournalTransaction, state: State) -> None:
    """Store the state after the journal's last entry, and drop old snapshots."""
    content = encode(state)
    digest = hashlib.sha256(content).digest()
    transaction.write_snapshot(StoredSnapshot(state.seq, state.hash, digest, content), KEPT)


def newest(transaction: JournalTransaction, configuration: Configuration) -> State:
    """The state of the newest intact snapshot, or the one before the first entry."""
    for number in transaction.snapshot_numbers():
        if number <= transaction.head.seq:
            stored = transaction.snapshot(number)
            if stored is not None and intact(stored):
                try:
                    state = decode(stored.content, configuration)
                except Exception:  # noqa: BLE001 (gates are anybody's code)
                    continue  # of a version that laid its state out otherwise: replay instead
                if (state.seq, state.hash) == (stored.seq, stored.hash):
                    return state
    return State(configuration)


def intact(stored: StoredSnapshot) -> bool:
    """Whether the content is the one that was written."""
    content = stored.content  # a damaged row can hold any type
    return isinstance(content, bytes) and hashlib.sha256(content).digest() == stored.digest


def differs(content: bytes, state: State) -> bool:
    """Whether a snapshot is not the one of ``state``; the first versions wrote less."""
    header, _ = _opened(content)
    since = header.get(_RECENT_REQUESTS)
    return content != encode(state, _SERIES in header, _LATEST in header["policy"], since)


def encode(
    state: State,
    with_series: bool = True,
    with_latest: bool = True,
    requests_since: int | None = -1,
) -> bytes:
    """requests_since: number of the entry after which request ids are remembered; None: none are."""
    configuration = state.configuration
    arrays = durable_arrays(state)
    policy = state_file.header(configuration.spec, state.run, configuration.absorb, configuration.name)
    if not with_latest:
        policy.pop(_LATEST, None)
    header: dict[str, Any] = {
        "policy": policy,
        "seq": state.seq,
        "hash": state.hash.hex(),
        "at": state.at,
        "open": [(seq, *entry) for seq, entry in state.open.items()],
        "counts": state.counts,
        "alarm": [state.alarm, state.model_alarm],
    }
    if with_series and state.series is not None:
        header[_SERIES] = state.series.stride
        arrays[_SERIES] = state.series.array()
    if requests_since is not None:
        header[_RECENT_REQUESTS] = since = max(requests_since, state.recent.since)
        arrays[_RECENT_REQUESTS] = state.recent.array(since)
    header["arrays"] = [(key, a.dtype.str, a.shape) for key, a in arrays.items()]
    text = json.dumps(header).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *(a.tobytes() for a in arrays.values())])


def decode(content: bytes, configuration: Configuration) -> State:
    """The state that ``encode`` wrote, bit for bit; raises if something is missing."""
    header, start = _opened(content)
    arrays: dict[str, np.ndarray[Any, Any]] = dict(_RECENT)
    for key, kind, shape in header["arrays"]:
        array = np.frombuffer(content, kind, int(np.prod(shape)), start).reshape(shape)
        arrays[key] = array.copy()
        start += array.nbytes
    state = State(configuration)
    rounds, next_ = int(header["policy"]["rounds"]), int(header["policy"]["next"])
    latest = None if state.run.outcomes.in_order else header["policy"][_LATEST]
    state.run.restore(arrays, rounds, next_, latest)
    state.seq, state.hash, state.at = header["seq"], bytes.fromhex(header["hash"]), header["at"]
    state.open = {seq: OpenDecision(round_, at) for seq, round_, at in header["open"]}
    state.seq_of = {entry.round: seq for seq, entry in state.open.items()}
    state.counts = header["counts"]
    state.alarm, state.model_alarm = header["alarm"]
    state.series = None
    if _SERIES in header:
        state.series = DownsampledSeries.restored(arrays[_SERIES], header[_SERIES])
    if _RECENT_REQUESTS in header:
        state.recent = RecentRequests.restored(arrays[_RECENT_REQUESTS], header[_RECENT_REQUESTS])
    else:  # an early version, which remembered none
        state.recent = RecentRequests(state.seq)
    return state


def _opened(content: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    (length,) = _LENGTH.unpack_from(content)
    return json.loads(content[4 : 4 + length]), 4 + length
