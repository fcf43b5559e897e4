"""A state as bytes, so that opening a long journal reads its end only. A cache, never an authority."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np
from sqlalchemy import bindparam, delete, select

from c4b.deployment.configuration import Configuration
from c4b.deployment.downsampled_series import Course
from c4b.deployment.state import Open, State, durable_arrays
from c4b.errors import C4BError
from c4b.journal.journal import Journal
from c4b.journal.sql_schema import snapshots
from c4b.policies import state_file
from c4b.policies.pending import REMEMBERED

KEPT = 2
"""Snapshots kept: the newest, and one in case it is damaged."""
_LENGTH = struct.Struct("<I")
_INSERT = snapshots.insert()
_MINE = snapshots.c.deployment == bindparam("row")
_NUMBERS = select(snapshots.c.seq).where(_MINE).order_by(snapshots.c.seq.desc())
_CONTENT = select(snapshots.c.seq, snapshots.c.hash, snapshots.c.digest, snapshots.c.content).where(
    _MINE, snapshots.c.seq == bindparam("number")
)
_DROP = delete(snapshots).where(_MINE, snapshots.c.seq < bindparam("oldest"))
_RECENT = {
    "outcomes.recent_round": np.full(REMEMBERED, -1, dtype=np.int64),
    "outcomes.recent_reward": np.full(REMEMBERED, np.nan),
}
"""What a policy alone keeps to recognise repetitions; here the journal does."""


def due(state: State, last: int, every: int) -> bool:
    """Seldom enough that writing all pending decisions costs little for each entry."""
    return state.seq - last >= max(every, len(state.open))


def write(journal: Journal, state: State) -> None:
    """Store the state after the journal's last entry, and drop old snapshots."""
    content, row, run = encode(state), journal.head.row, journal.transaction
    values = {
        "deployment": row,
        "seq": state.seq,
        "hash": state.hash,
        "digest": hashlib.sha256(content).digest(),
        "content": content,
    }
    run.run(_INSERT, values)
    journal.mark_snapshot(state.seq)
    kept = [seq for (seq,) in run.all(_NUMBERS, {"row": row})][:KEPT]
    run.run(_DROP, {"row": row, "oldest": kept[-1]})


def newest(journal: Journal, configuration: Configuration) -> State:
    """The state of the newest intact snapshot, or the one before the first entry."""
    row, head = journal.head.row, journal.head.seq
    for (number,) in journal.transaction.all(_NUMBERS, {"row": row}):
        if number <= head:
            found = journal.transaction.one(_CONTENT, {"row": row, "number": number})
            seq, hash_, digest, content = found
            if intact(content, digest):
                try:
                    state = decode(content, configuration)
                except (ValueError, KeyError, TypeError, IndexError, C4BError):
                    continue  # of a version that laid its state out otherwise: replay instead
                if (state.seq, state.hash) == (seq, hash_):
                    return state
    return State(configuration)


def intact(content: object, digest: object) -> bool:
    return isinstance(content, bytes) and hashlib.sha256(content).digest() == digest


def differs(content: bytes, state: State) -> bool:
    """Whether a snapshot is not the one of ``state``; the first versions wrote no course."""
    header, _ = _opened(content)
    return content != encode(state, "course" in header)


def encode(state: State, course: bool = True) -> bytes:
    configuration = state.configuration
    arrays = durable_arrays(state)
    header: dict[str, Any] = {
        "policy": state_file.header(
            configuration.spec, state.run, configuration.absorb, configuration.name
        ),
        "seq": state.seq,
        "hash": state.hash.hex(),
        "at": state.at,
        "open": [(seq, *entry) for seq, entry in state.open.items()],
        "counts": state.counts,
        "alarm": [state.alarm, state.model_alarm],
    }
    if course and state.course is not None:
        header["course"] = state.course.stride
        arrays["course"] = state.course.array()
    header["arrays"] = [(key, a.dtype.str, a.shape) for key, a in arrays.items()]
    text = json.dumps(header).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *(a.tobytes() for a in arrays.values())])


def decode(content: bytes, configuration: Configuration) -> State:
    """The state that ``encode`` wrote, bit for bit."""
    header, start = _opened(content)
    arrays: dict[str, np.ndarray[Any, Any]] = dict(_RECENT)
    for key, kind, shape in header["arrays"]:
        array = np.frombuffer(content, kind, int(np.prod(shape)), start).reshape(shape)
        arrays[key] = array.copy()
        start += array.nbytes
    state = State(configuration)
    rounds, next_ = int(header["policy"]["rounds"]), int(header["policy"]["next"])
    state.run.restore(arrays, rounds, next_)
    state.seq, state.hash, state.at = header["seq"], bytes.fromhex(header["hash"]), header["at"]
    state.open = {seq: Open(round_, at) for seq, round_, at in header["open"]}
    state.seq_of = {entry.round: seq for seq, entry in state.open.items()}
    state.counts = header["counts"]
    state.alarm, state.model_alarm = header["alarm"]
    state.course = Course.restored(arrays["course"], header["course"]) if "course" in header else None
    return state


def _opened(content: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    (length,) = _LENGTH.unpack_from(content)
    return json.loads(content[4 : 4 + length]), 4 + length
