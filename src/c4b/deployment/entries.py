"""Journal entries: kinds, canonical bytes, hashes. The format is in the contract of ``journal``."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array

CREATED, LEARNED, DECIDED, OBSERVED = "created", "learned", "decided", "observed"
FORGOTTEN, EXECUTED, ALARM = "forgotten", "executed", "alarm"
KINDS = (CREATED, LEARNED, DECIDED, OBSERVED, FORGOTTEN, EXECUTED, ALARM)

GENESIS = bytes(32)
"""What the first entry carries for a previous hash."""

_HEAD = struct.Struct("<qqq")
_LENGTH = struct.Struct("<I")
_dump = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


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
        kind = self.kind.encode()
        request = b"" if self.request_id is None else b"=" + self.request_id.encode()
        return hashlib.sha256(
            b"".join(
                (
                    _HEAD.pack(self.seq, -1 if self.about is None else self.about, self.at),
                    _LENGTH.pack(len(kind)),
                    kind,
                    _LENGTH.pack(len(request)),
                    request,
                    self.previous,
                    self.payload,
                )
            )
        ).digest()

    def unpack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Fields and arrays; the arrays are copies that kernels may be given."""
        (length,) = _LENGTH.unpack_from(self.payload)
        header = json.loads(self.payload[4 : 4 + length])
        arrays, start = {}, 4 + length
        for name, shape in header["arrays"]:
            size = math.prod(shape)
            flat = np.frombuffer(self.payload, "<f8", size, start).astype(np.float64)
            arrays[name] = flat.reshape(shape)
            start += 8 * size
        return header["fields"], arrays


def pack(fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Canonical bytes: equal content gives equal bytes."""
    header = _dump({"fields": fields, "arrays": [(name, a.shape) for name, a in arrays.items()]}).encode()
    parts = [_LENGTH.pack(len(header)), header]
    parts += [a.astype("<f8", copy=False).tobytes() for a in arrays.values()]
    return b"".join(parts)
