"""Journal entries: kinds, canonical bytes, hashes.

Format 1
--------
hash = sha256(seq, about or -1, at: int64 each | length of kind: uint32 | kind | length of r: uint32 | r |
previous hash | payload); r = "=" + request id, or empty without one. payload = length of header: uint32 |
header | arrays. The header is JSON {"arrays": [[name, shape], ...], "fields": {...}}, keys sorted, no
spaces; the arrays follow in that order, float64, row by row. Everything is little-endian. ``at`` is in
microseconds since 1970 and never decreases.

    created    fields: the configuration, with a composition or the name of a gate. For a composition:
               ridges (G,) of the stacked ellipsoids; rule: propose, boldness, thrift, latches,
               checkpoints, cushion; alarms: level, bets
    learned    features (n, d), rewards (n,)
    decided    candidates (K, d), baseline (d,), details (5, K): UCB, margin, joint and separate
               bound, score; numbers: bank before and after, certificate, UCB of what is executed, radius;
               estimate (d,): the set's centre; upper (K,): upper bounds of the contrasts, in sets of
               several ellipsoids. The last two explain only; the first journals are without them, and a
               gate in plain Python may have others. fields: action, context (JSON text), alarm; and only
               if there is one: propensity, baseline_mean, labels
    observed   numbers: reward. about: the decision; by: "caller" or "timeout"
    forgotten  about, by; independent: true, only if the caller asserted that it depends on no reward of
               that decision or of a later one
    executed   features (d,) of what was executed instead; numbers: bank before, bank after;
               independent: as in forgotten
    alarm      reason, source: "model" or "ledger"
    control    action: "freeze", "thaw", "ramp" (with share), "go-live", "close", "succeed" (with
               successor, and handed, the reserve that it takes over), "open" (a successor has its
               history), "succeeded" (with successor, and hash of its first entry); by: who ordered it;
               why. From the next entry on a decision that was held has the fields held ("shadow",
               "frozen", "ramp") and proposed, the candidate that the gate chose; null: the baseline.
               action "archive": entries 1 to ``last``, whose hash is ``hash``, were written to ``file``;
               their payloads may be empty from then on

Format 2 puts such a payload into an envelope, see ``envelope``: compressed, or with a context beside it
that can be erased. ``records``, ``compress`` and ``erases_contexts`` in ``created`` say what a deployment
does. With ``records`` = "executed" a decision has only some candidates: ``kept`` lists which, ``offered``
counts all, ``pool`` is their SHA-256 (see ``c4b.deployment.transactions.recording``).

``evaluated``, in a decision with all candidates whose choice did not depend on all margins, lists the
candidates that details (5, n) are of; their separate bounds may be NaN, and there is no ``upper``.

``ahead``, if there is one, is what is added to clocks from then on, in microseconds.
``seal``, in deployments with a key, is the last array of every entry: see ``seal``.
``state``, in the first entry after a snapshot, is the snapshot's SHA-256.
``set`` fingerprints the confidence set: in ``decided`` and ``executed`` the one that was used, elsewhere
the one that resulted; ``observations`` counts what it had absorbed.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.journal import envelope

CREATED, LEARNED, DECIDED, OBSERVED = "created", "learned", "decided", "observed"
FORGOTTEN, EXECUTED, ALARM, CONTROL = "forgotten", "executed", "alarm", "control"
KINDS = (CREATED, LEARNED, DECIDED, OBSERVED, FORGOTTEN, EXECUTED, ALARM, CONTROL)

GENESIS = bytes(32)
"""What the first entry carries for a previous hash."""

_HEAD = struct.Struct("<qqq")
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_MAKE_ENCODER: Any = getattr(json.encoder, "c_make_encoder", None)
_LENGTH = struct.Struct("<I")
_FLOATS = np.dtype("<f8")


class Entry(NamedTuple):
    """One row of the journal; immutable once committed."""

    seq: int
    kind: str
    about: int | None
    request_id: str | None
    at: int
    payload: bytes
    previous: bytes

    def hash(self) -> bytes:
        """sha256 over every field."""
        return hashlib.sha256(hashed_text(self)).digest()

    def unpack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Fields and arrays; the arrays are copies that kernels may be given."""
        payload = envelope.opened(self.payload)
        (length,) = _LENGTH.unpack_from(payload)
        header = json.loads(payload[4 : 4 + length])
        arrays, start = {}, 4 + length
        for name, shape in header["arrays"]:
            size = math.prod(shape)
            flat = np.frombuffer(payload, "<f8", size, start).astype(np.float64)
            arrays[name] = flat.reshape(shape)
            start += 8 * size
        fields: dict[str, Any] = header["fields"]
        if envelope.CONTEXT_HASH in fields:
            envelope.put_back(fields, envelope.beside(self.payload))
        return fields, arrays


def hashed_text(entry: Entry) -> bytes:
    """What an entry's hash covers; it ends with the payload, or with the part of it that is hashed."""
    seq, kind, about, request_id, at, payload, previous = entry
    request = b"" if request_id is None else f"={request_id}".encode()
    return b"".join(
        (
            _HEAD.pack(seq, -1 if about is None else about, at),
            _NAMES.get(kind) or _named(kind),
            _LENGTH.pack(len(request)),
            request,
            previous,
            envelope.hashed_part(payload),
        )
    )


def _named(kind: str) -> bytes:
    """A kind with its length before it."""
    name = kind.encode()
    return _LENGTH.pack(len(name)) + name


_NAMES = {kind: _named(kind) for kind in KINDS}


def _new_encoder() -> Callable[[Any], str]:
    """``_JSON.encode`` in half the time.

    The original makes a compiled encoder for each text; this one keeps it. Where there is no such
    encoder, or one that takes other arguments, the original is returned.
    """
    with suppress(TypeError, ValueError):
        encoder = _MAKE_ENCODER(
            None, _JSON.default, json.encoder.encode_basestring_ascii, None, ":", ",", True, False, False
        )
        sample = {"b": [1.5, None, True], "a": '"\u00fc'}
        if "".join(encoder(sample, 0)) == _JSON.encode(sample):
            return lambda value: "".join(encoder(value, 0))
    return _JSON.encode


canonical = _new_encoder()
"""JSON with sorted keys and no spaces. Raises ``ValueError`` for a number that is not finite."""


def pack(fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Canonical bytes: equal content gives equal bytes."""
    shapes = tuple([(name, a.shape) for name, a in arrays.items()])
    header = f'{{"arrays":{_listed(shapes)},"fields":{canonical(fields)}}}'.encode()
    parts = [(a if a.dtype is _FLOATS else a.astype(_FLOATS)).tobytes() for a in arrays.values()]
    return b"".join([_LENGTH.pack(len(header)), header, *parts])


@lru_cache(256)
def _listed(shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    return canonical(shapes)
