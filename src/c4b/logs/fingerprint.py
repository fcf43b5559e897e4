"""Whether a log still holds what it held."""

from __future__ import annotations

import hashlib
from pathlib import Path

from c4b.logs.log import Log
from c4b.logs.sources import READERS
from c4b.logs.streamed_log import StreamedLog

BLOCK = 1 << 20


def fingerprint(log: Log | StreamedLog) -> str:
    """Of the bytes of its file, or of the rows of a frame (these differ between versions of Polars): kept
    results of other rows are noticed by it."""
    found = hashlib.blake2b(digest_size=16)
    if Path(log.name).suffix.lower() in READERS:
        with open(log.name, "rb") as file:
            while block := file.read(BLOCK):
                found.update(block)
    else:
        for batch in log.batches():
            found.update(batch.frame.hash_rows(seed=0).to_numpy().tobytes())
    return found.hexdigest()
