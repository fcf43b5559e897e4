"""Entries read by the format that is written down in ``c4b.journal.entries``.

This shares no code with what wrote them.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding
from c4b.journal.entries import Entry


def entry_hash(entry: Entry) -> bytes:
    """The hash that the next entry must carry."""
    try:
        return _hash(entry)
    except Exception as error:  # a damaged row can hold any type
        raise Finding(f"cannot be read ({error})", entry.seq) from error


def _hash(e: Entry) -> bytes:
    about = -1 if e.about is None else e.about
    kind = e.kind.encode("utf-8")
    request = b"" if e.request_id is None else ("=" + e.request_id).encode("utf-8")
    text = struct.pack("<3q", e.seq, about, e.at) + struct.pack("<I", len(kind)) + kind
    text += struct.pack("<I", len(request)) + request + e.previous + e.payload
    return hashlib.sha256(text).digest()


def entry_contents(payload: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Fields and arrays."""
    size = int.from_bytes(payload[:4], "little")
    header = json.loads(payload[4 : 4 + size].decode("utf-8"))
    numbers = np.frombuffer(payload[4 + size :], dtype="<f8")
    arrays, start = {}, 0
    for name, shape in header["arrays"]:
        stop = start + math.prod(shape)
        arrays[name] = numbers[start:stop].reshape(shape)
        start = stop
    if start != len(numbers):
        raise Finding("holds more numbers than it says")
    return header["fields"], arrays
