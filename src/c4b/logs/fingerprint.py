"""Detects whether the content of a log has changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from c4b.logs.log import Log
from c4b.logs.sources import READERS
from c4b.logs.streamed_log import StreamedLog

BLOCK = 1 << 20


def fingerprint(log: Log | StreamedLog) -> str:
    """Digest of the bytes of a file, or of the rows of a frame (which depends on the version of Polars).
    Stored results of other rows are recognised by it."""
    found = hashlib.blake2b(digest_size=16)
    if Path(log.name).suffix.lower() in READERS:
        with open(log.name, "rb") as file:
            while block := file.read(BLOCK):
                found.update(block)
    else:
        for batch in log.batches():
            found.update(batch.frame.hash_rows(seed=0).to_numpy().tobytes())
    return found.hexdigest()
