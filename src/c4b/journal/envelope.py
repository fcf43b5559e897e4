"""Payloads in an envelope: compressed, and with a text beside them that can be erased.

Format 2
--------
payload = FF FF FF FF | n: uint32 | how: uint8 | n bytes | text beside. The first four bytes tell the
formats apart, because no header of format 1 is that long. The entry's hash covers all but the text
beside, and so does the seal, which is the last 32 of the n bytes in deployments with a key.

how = 0: the n bytes are a payload of format 1.
how = 1: they are zlib (RFC 1950) of length of header: uint32 | header | bytes of the arrays' numbers,
         first the lowest byte of every number, then the second of every number, and so on; then the seal.

The text beside is a salt of 16 random bytes and a decision's context in UTF-8. The field ``context_hash``
is the SHA-256 of both: it shows that the text is the one that was recorded. Once the text is erased,
the hash says nothing about it, because the salt is erased, too.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from c4b.errors import JournalCorrupt

CONTEXT, CONTEXT_HASH = "context", "context_hash"
MARK = b"\xff\xff\xff\xff"
_FRAME = struct.Struct("<4sIB")
_LENGTH = struct.Struct("<I")
_PLAIN, _ZLIB = 0, 1
_SALT, _SEAL = 16, 32
_LEVEL = 6


def new_salt() -> bytes:
    """Random bytes that cannot be guessed."""
    return os.urandom(_SALT)


def hashed_part(payload: bytes) -> bytes:
    """What the hash of an entry covers of its payload."""
    if payload[:4] != MARK:
        return payload
    _, length, _ = _FRAME.unpack_from(payload)
    return payload[: _FRAME.size + length]


def beside(payload: bytes) -> bytes:
    """The salt and the text that no hash covers; empty if there is none, or it was erased."""
    return payload[len(hashed_part(payload)) :]


def opened(payload: bytes) -> bytes:
    """The payload in format 1; of a compressed one without its seal."""
    if payload[:4] != MARK:
        return payload
    _, length, how = _FRAME.unpack_from(payload)
    body = payload[_FRAME.size : _FRAME.size + length]
    if how == _PLAIN:
        return body
    if how != _ZLIB:
        raise JournalCorrupt(f"a payload is kept in a way ({how}) that this version does not know")
    content = zlib.decompressobj().decompress(body)
    start = 4 + _LENGTH.unpack_from(content)[0]
    columns = np.frombuffer(content, np.uint8, offset=start).reshape(8, -1)
    return content[:start] + columns.T.tobytes()


def compressed(payload: bytes, sealed: bool) -> bytes | None:
    """A payload of format 1 without seal in an envelope, with room for the seal; None: no smaller."""
    start = 4 + _LENGTH.unpack_from(payload)[0]
    rows = np.frombuffer(payload, np.uint8, offset=start).reshape(-1, 8)
    body = zlib.compress(payload[:start] + rows.T.tobytes(), _LEVEL) + bytes(_SEAL if sealed else 0)
    if len(body) + _FRAME.size >= len(payload) + (_SEAL if sealed else 0):
        return None
    return _FRAME.pack(MARK, len(body), _ZLIB) + body


def enclosed(payload: bytes, text: bytes) -> bytes:
    """A payload in an envelope, with a text beside it."""
    if payload[:4] == MARK:
        return payload + text
    return b"".join((_FRAME.pack(MARK, len(payload), _PLAIN), payload, text))


def set_aside(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], bytes]:
    """The fields with the hash of their context in its place, and the text beside."""
    text = fields.get(CONTEXT)
    if text is None:
        return fields, b""
    salted = new_salt() + text.encode()
    return {**fields, CONTEXT: None, CONTEXT_HASH: hashlib.sha256(salted).hexdigest()}, salted


def put_back(fields: dict[str, Any], salted: bytes) -> None:
    """The context in its place again, if it was not erased."""
    if CONTEXT_HASH in fields and salted:
        if hashlib.sha256(salted).hexdigest() != fields[CONTEXT_HASH]:
            raise JournalCorrupt("a context is not the one that was recorded; restore it from a backup")
        fields[CONTEXT] = salted[_SALT:].decode()
