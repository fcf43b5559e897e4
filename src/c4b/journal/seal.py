"""Seals: a keyed hash in every entry, which cannot be made without the key.

The hash chain shows that a journal is consistent. A person who can write to the store can replace it by
another consistent journal: change a reward, decide everything after it again, and compute all hashes
again. With a key that is kept outside of the store, every entry ends with its seal: HMAC-SHA256 over
everything that the entry's hash covers, except the seal itself, which is the payload's last 32 bytes
(the last array, ``seal``).

Keys are given in the environment variable ``C4B_JOURNAL_KEY``, or in a file that ``C4B_JOURNAL_KEY_FILE``
names: texts of at least 32 characters, separated by white space. New deployments are sealed with the
first key. A deployment's first entry says by which key it is sealed, by the key's public id.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

import numpy as np

from c4b.errors import InvalidInput
from c4b.journal.entries import Entry, hashed_text
from c4b.journal.envelope import hashed_part

SEAL = "seal"
"""Name of the array that holds a seal."""
BLANK = np.zeros(4)
"""What holds the seal's place while it is computed."""
KEY, KEY_FILE = "C4B_JOURNAL_KEY", "C4B_JOURNAL_KEY_FILE"
SHORTEST = 32
"""Characters of a key, at least: 128 random bits in hexadecimal digits."""


class Sealer:
    """Makes and checks the seals of one key."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self.key_id = hmac.digest(self._key, b"c4b journal key", hashlib.sha256).hex()[:16]
        """Public: it does not tell the key."""

    def sealed(self, entry: Entry) -> Entry:
        """The entry, whose last array is ``BLANK``, with its seal instead."""
        hashed = hashed_part(entry.payload)
        sealed = hashed[:-32] + self._seal(entry) + entry.payload[len(hashed) :]
        return entry._replace(payload=sealed)

    def holds(self, entry: Entry) -> bool:
        """Whether the entry ends with its seal."""
        return hmac.compare_digest(hashed_part(entry.payload)[-32:], self._seal(entry))

    def _seal(self, entry: Entry) -> bytes:
        return hmac.digest(self._key, hashed_text(entry)[:-32], hashlib.sha256)


def known_keys() -> list[str]:
    """The keys of this process, in order."""
    texts, path = [os.environ.get(KEY, "")], os.environ.get(KEY_FILE)
    if path:
        try:
            texts.append(Path(path).read_text())
        except (OSError, UnicodeError) as error:
            raise InvalidInput(KEY_FILE, path, f"cannot be read ({error})") from error
    keys = [key for text in texts for key in text.split()]
    if any(len(key) < SHORTEST for key in keys):
        remedy = f"every key needs {SHORTEST} characters or more; `openssl rand -hex 32` makes one"
        raise InvalidInput(KEY, "(hidden)", remedy)
    return keys


def first_id() -> str | None:
    """Public id of the key of new deployments; None without a key."""
    keys = known_keys()
    return Sealer(keys[0]).key_id if keys else None


def find(key_id: str | None) -> Sealer | None:
    """The sealer of a deployment; None if it is not sealed, or its key is not known here."""
    if key_id is None:
        return None
    return next((each for each in map(Sealer, known_keys()) if each.key_id == key_id), None)
