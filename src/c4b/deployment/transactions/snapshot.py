"""A state as bytes, so that opening a long journal reads only its end. It is only a cache."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np

from c4b.deployment.configuration import Configuration
from c4b.deployment.summary.downsampled_series import DownsampledSeries, Row
from c4b.deployment.summary.journal_summary import ALARMS, MODEL, AlarmMark, JournalSummary
from c4b.deployment.transactions.recent_requests import RecentRequests
from c4b.deployment.transactions.rollout import Rollout
from c4b.deployment.transactions.state import (
    AHEAD,
    ARCHIVE,
    INSTEAD,
    OpenDecision,
    State,
    durable_arrays,
    first_rollout,
    needs_instead,
)
from c4b.journal.backend import StoredSnapshot
from c4b.journal.journal import Journal
from c4b.policies import state_file
from c4b.policies.pending import REMEMBERED

KEPT = 2
"""Snapshots kept: the newest, and one in case it is damaged."""
PENDING_PER_ENTRY = 2
"""Pending decisions that one entry pays for: opening replays at most this part of their number. Writing
10,000 of them takes 20 ms, in which no decision is answered, so it must happen to less than one in a
hundred decisions."""
ATTESTED = "state"
"""Field of the entry after a snapshot that holds the snapshot's digest."""
NEAR = 1e-6
"""Largest difference between two machines' arithmetic."""
_LENGTH = struct.Struct("<I")
_OPEN = "open"
"""Name of the open decisions in a snapshot."""
_SERIES = "course"
"""Name of the series in a snapshot."""
_SUMMARY = "summary"
"""Name of the summary in a snapshot, and prefix of its arrays."""
_LEDGER = "ledger"
"""Name of a compiled gate's ledger."""
_RECENT_REQUESTS = "requests"
"""Name of the last request ids in a snapshot."""
_LATEST = "latest"
"""Name of the last round whose reward was reported; see ``GateRun.restore``."""
_RANGE = "rewards"
"""Name of the declared range of rewards in a model; early versions wrote only those there were."""
_ROLLOUT, _UNCHARGED = "rollout", "uncharged"
"""Names of the rollout and of the rounds in shadow; only if there was an order, or such a round."""
_RECENT = {
    "outcomes.recent_round": np.full(REMEMBERED, -1, dtype=np.int64),
    "outcomes.recent_reward": np.full(REMEMBERED, np.nan),
}
"""``REMEMBERED_REPORTS`` of a state that has none."""


def due(state: State, last: int, every: int) -> bool:
    """Seldom enough that writing all pending decisions costs little for each entry."""
    return state.seq - last >= max(every, len(state.open) // PENDING_PER_ENTRY)


def of(state: State) -> StoredSnapshot:
    """The snapshot of a state. It is stored together with the next entry, which attests its digest."""
    content = encode(state)
    return StoredSnapshot(state.seq, state.hash, hashlib.sha256(content).digest(), content)


def newest(journal: Journal, configuration: Configuration, before: int | None = None) -> State:
    """The state of the newest snapshot that is intact and attested, or the one before the first entry.

    before: an entry that must not be in it.
    """
    transaction = journal.transaction
    last = transaction.head.seq if before is None else before - 1
    for number in transaction.snapshot_numbers():
        if number <= last:
            stored = transaction.snapshot(number)
            if stored is not None and intact(stored) and _is_attested(stored, journal, configuration):
                try:
                    state = decode(stored.content, configuration)
                except Exception:  # noqa: BLE001 (gates are anybody's code)
                    continue  # of a version that laid its state out otherwise: replay instead
                if (state.seq, state.hash) == (stored.seq, stored.hash):
                    return state
    return State(configuration)


def _is_attested(stored: StoredSnapshot, journal: Journal, configuration: Configuration) -> bool:
    """Whether the entry after it, which the hash chain protects, holds the snapshot's digest.

    Journals of early versions do not attest their snapshots.
    """
    if not configuration.attests_snapshots:
        return True
    entry = journal.at(stored.seq + 1)
    return entry is not None and entry.unpack()[0].get(ATTESTED) == stored.digest.hex()


def intact(stored: StoredSnapshot) -> bool:
    """Whether the content is the one that was written."""
    content = stored.content  # a damaged row can hold any type
    return isinstance(content, bytes) and hashlib.sha256(content).digest() == stored.digest


def holds_summary(content: bytes) -> bool:
    """Whether a state that is restored from it can answer questions about the whole past."""
    header, _ = _opened(content)
    return _SUMMARY in header and _SERIES in header and not _is_in_journal(header)


def differs(content: bytes, state: State) -> bool:
    """Whether a snapshot is not the one of ``state``; the first versions wrote less."""
    header, _ = _opened(content)
    since = header.get(_RECENT_REQUESTS)
    columns = next((shape[1] for key, _, shape in header["arrays"] if key == _SERIES), 0)
    policy = header["policy"]
    with_range = _RANGE in policy["model"]
    alarms = ALARMS if _forgot_alarm(header) else None
    return content != encode(
        state, columns, _LATEST in policy, since, _SUMMARY in header, with_range, alarms
    )


def is_near(content: bytes, state: State, sets_agree: bool) -> bool:
    """Whether a snapshot that differs from ``state`` in its bytes says the same nevertheless.

    For machines and versions whose arithmetic differs in the last bits. Banks, counts and open decisions
    never differ. A snapshot that cannot be read is never used, so it says nothing.

    sets_agree: every set so far was replayed with the bits that were recorded. Then only a ledger may
    differ whose earlier banks were corrected because another action was executed.
    """
    if sets_agree and not state.counts["executed"]:
        return False
    try:
        stored = decode(content, state.configuration)
    except Exception:  # noqa: BLE001 (gates are anybody's code)
        return True
    ours, theirs = durable_arrays(state), durable_arrays(stored)
    return (
        (stored.seq, stored.hash, stored.at, stored.open) == (state.seq, state.hash, state.at, state.open)
        and (stored.rollout, stored.archived) == (state.rollout, state.archived)
        and (stored.counts, stored.run.rounds) == (state.counts, state.run.rounds)
        and stored.observations == state.observations
        and np.array_equal(stored.bank, state.bank, equal_nan=True)
        and _are_near(stored.gate.radius, state.gate.radius)
        and _are_near(stored.gate.estimate, state.gate.estimate)
        and (not sets_agree or _are_near(ours.get(_LEDGER), theirs.get(_LEDGER)))
        and all(
            np.array_equal(ours[name], theirs[name], equal_nan=True)
            for name in ours
            if name.startswith("outcomes.") or (sets_agree and name != _LEDGER)
        )
    )


def _are_near(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.allclose(one, other, NEAR, NEAR, equal_nan=True))


def encode(
    state: State,
    series_columns: int = len(Row._fields),
    with_latest: bool = True,
    requests_since: int | None = -1,
    with_summary: bool = True,
    with_range: bool = True,
    alarms: int | None = None,
) -> bytes:
    """series_columns: early versions wrote 8 or none. requests_since: number of the entry after which
    request ids are remembered; None: none are. with_range: of a model without one. alarms: the summary's
    first ones only."""
    configuration = state.configuration
    arrays = durable_arrays(state)
    policy = state_file.header(configuration.spec, state.run, configuration.absorb, configuration.name)
    if not with_latest:
        policy.pop(_LATEST, None)
    if not with_range and policy["model"][_RANGE] is None:
        del policy["model"][_RANGE]
    header: dict[str, Any] = {
        "policy": policy,
        "seq": state.seq,
        "hash": state.hash.hex(),
        "at": state.at,
        _OPEN: [],
        "counts": state.counts,
        "alarm": [state.alarm, state.model_alarm],
    }
    if state.ahead:
        header[AHEAD] = state.ahead
    if state.rollout != first_rollout(configuration):
        header[_ROLLOUT] = state.rollout.fields()
    if state.archived:
        header[ARCHIVE] = state.archived
    if state.run.uncharged:
        header[_UNCHARGED] = state.run.uncharged
    if series_columns and state.series is not None:
        header[_SERIES] = state.series.stride
        arrays[_SERIES] = state.series.array()[:, :series_columns]
    if requests_since is not None:
        header[_RECENT_REQUESTS] = since = max(requests_since, state.recent.since)
        arrays[_RECENT_REQUESTS] = state.recent.array(since)
    if with_summary and state.summary is not None:
        header[_SUMMARY] = state.summary.plain(alarms)
        arrays |= {f"{_SUMMARY}.{name}": array for name, array in state.summary.arrays().items()}
    header["arrays"] = [(key, a.dtype.str, a.shape) for key, a in arrays.items()]
    parts = {name: json.dumps(value) for name, value in header.items()} | {_OPEN: _open(state)}
    text = f"{{{', '.join(f'{json.dumps(name)}: {part}' for name, part in parts.items())}}}".encode()
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
    state.run.restore(arrays, rounds, next_, latest, header.get(_UNCHARGED, 0))
    state.seq, state.hash, state.at = header["seq"], bytes.fromhex(header["hash"]), header["at"]
    state.ahead = header.get(AHEAD, 0)
    state.archived = header.get(ARCHIVE, 0)
    if _ROLLOUT in header:
        state.rollout = Rollout.recorded(header[_ROLLOUT])
    state.open = {seq: OpenDecision(*entry) for seq, *entry in header[_OPEN]}
    state.seq_of = {entry.round: seq for seq, entry in state.open.items()}
    state.counts = header["counts"]
    if INSTEAD not in arrays and needs_instead(state) and not state.archived:
        raise KeyError(INSTEAD)  # of a version that did not know: the journal does
    state.alarm, state.model_alarm = header["alarm"]
    state.series = None
    if _SERIES in header and arrays[_SERIES].shape[1] == len(Row._fields):  # early ones had fewer
        state.series = DownsampledSeries.restored(arrays[_SERIES], header[_SERIES])
    state.summary = None
    if _SUMMARY in header and not _is_in_journal(header):
        own = {name: array for key, array in arrays.items() if (name := _summary_part(key))}
        state.summary = JournalSummary.restored(header[_SUMMARY], own, configuration.model.dim)
    if _RECENT_REQUESTS in header:
        state.recent = RecentRequests.restored(arrays[_RECENT_REQUESTS], header[_RECENT_REQUESTS])
    else:  # an early version, which remembered none
        state.recent = RecentRequests(state.seq)
    return state


def _forgot_alarm(header: dict[str, Any]) -> bool:
    """Whether the summary lacks the alarm against the model, which early versions left out where ALARMS
    others came before it."""
    alarms = header[_SUMMARY]["alarms"] if _SUMMARY in header else ()
    known = any(AlarmMark(*alarm).source == MODEL for alarm in alarms)
    return len(alarms) == ALARMS and header["alarm"][1] is not None and not known


def _is_in_journal(header: dict[str, Any]) -> bool:
    """Whether the journal tells the alarm that the summary lacks, and none of it is in an archive."""
    return _forgot_alarm(header) and not header.get(ARCHIVE)


def _summary_part(key: str) -> str:
    """The summary's own name of an array in a snapshot; empty for other arrays."""
    return key.removeprefix(f"{_SUMMARY}.") if key.startswith(f"{_SUMMARY}.") else ""


def _open(state: State) -> str:
    """The open decisions as JSON; there may be many. Early journals have no tags in their ids."""
    found = state.open.items()
    if state.configuration.ids_hold_hashes:
        listed = [f'[{seq}, {round_}, {at}, "{tag}"]' for seq, (round_, at, tag) in found]
    else:
        listed = [f"[{seq}, {round_}, {at}]" for seq, (round_, at, _) in found]
    return f"[{', '.join(listed)}]"


def _opened(content: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    (length,) = _LENGTH.unpack_from(content)
    return json.loads(content[4 : 4 + length]), 4 + length
