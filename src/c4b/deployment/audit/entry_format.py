"""Read entries by the format that ``c4b.journal.entries`` documents.

This module shares no code with the modules that write entries.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import struct
import zlib
from typing import Any

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding
from c4b.journal.entries import Entry
from c4b.journal.seal import known_keys


def entry_hash(entry: Entry) -> bytes:
    """The hash that the next entry must carry."""
    try:
        return _hash(entry)
    except Exception as error:  # a damaged row can hold any type
        raise Finding(f"cannot be read ({error})", entry.seq) from error


def has_seal(entry: Entry, key: str) -> bool:
    """Whether the last 32 bytes are an HMAC with this key over all that is before them."""
    text = _text(entry)
    mac = hmac.new(key.encode("utf-8"), text[:-32], "sha256")
    return hmac.compare_digest(mac.digest(), text[-32:])


def key_of(key_id: str | None) -> str | None:
    """The key with this public id, if this process knows it."""
    for key in known_keys() if key_id is not None else ():
        if hmac.new(key.encode("utf-8"), b"c4b journal key", "sha256").hexdigest()[:16] == key_id:
            return key
    return None


def _hash(entry: Entry) -> bytes:
    return hashlib.sha256(_text(entry)).digest()


def _text(e: Entry) -> bytes:
    about = -1 if e.about is None else e.about
    kind = e.kind.encode("utf-8")
    request = b"" if e.request_id is None else ("=" + e.request_id).encode("utf-8")
    text = struct.pack("<3q", e.seq, about, e.at) + struct.pack("<I", len(kind)) + kind
    return text + struct.pack("<I", len(request)) + request + e.previous + _parts(e.payload)[0]


def _parts(payload: bytes) -> tuple[bytes, bytes]:
    """What is hashed, and the text beside it."""
    if not payload.startswith(b"\xff" * 4):
        return payload, b""
    end = 9 + int.from_bytes(payload[4:8], "little")
    if end > len(payload):
        raise Finding("is shorter than it says")
    return payload[:end], payload[end:]


def _without_envelope(payload: bytes) -> bytes:
    hashed, _ = _parts(payload)
    if hashed is payload and not payload.startswith(b"\xff" * 4):
        return payload
    if hashed[8] == 0:
        return hashed[9:]
    if hashed[8] != 1:
        raise Finding(f"is kept in an unknown way ({hashed[8]})")
    content = zlib.decompressobj().decompress(hashed[9:])
    start = 4 + int.from_bytes(content[:4], "little")
    count = (len(content) - start) // 8
    shuffled = [content[start + k * count : start + (k + 1) * count] for k in range(8)]
    return content[:start] + b"".join(bytes(number) for number in zip(*shuffled, strict=True))


def entry_contents(payload: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Fields and arrays."""
    beside, payload = _parts(payload)[1], _without_envelope(payload)
    size = int.from_bytes(payload[:4], "little")
    header = json.loads(payload[4 : 4 + size].decode("utf-8"))
    numbers = np.frombuffer(payload[4 + size :], dtype="<f8").copy()  # writeable: see c4b._validate
    arrays, start = {}, 0
    for name, shape in header["arrays"]:
        stop = start + math.prod(shape)
        arrays[name] = numbers[start:stop].reshape(shape)
        start = stop
    if start != len(numbers):
        raise Finding("holds more numbers than it says")
    if beside and hashlib.sha256(beside).hexdigest() != header["fields"].get("context_hash"):
        raise Finding("has a context beside it that is not the recorded one")
    return header["fields"], arrays
