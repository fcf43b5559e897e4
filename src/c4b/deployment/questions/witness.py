"""Numbers and hashes of entries that are kept outside the store: witnesses and receipts.

A hash chain shows that entries belong together. It cannot show that there were more of them: a journal
that is cut off, or replaced by an old copy, is a correct chain. Somebody who has the number and the hash
of a later entry can tell. A *witness* is such a pair, written to a file that the store's owner cannot
change, on another machine or in append-only storage. A *receipt* is the pair in a decision's answer.

Both files have one JSON object in each line, with ``seq`` and ``hash``, or with a ``receipt`` that holds
them, as in the service's answers. Lines that name another deployment are ignored.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from c4b.errors import InvalidInput, JournalCorrupt, StoreUnavailable

try:
    import fcntl
except ImportError:  # no POSIX system
    fcntl = None  # type: ignore[assignment]

Attested = dict[int, frozenset[str]]
"""Hashes by the numbers of their entries. Two hashes for one number are two different pasts."""
PATIENCE = 30
"""Seconds to wait for an address to answer."""


class Witness(NamedTuple):
    """The journal of ``deployment`` had an entry ``seq`` with this hash."""

    deployment: str
    seq: int
    hash: str

    def append_to(self, path: Path) -> None:
        """Add a line to the file, durably. Writers on one machine take turns."""
        line = {**self._asdict(), "written": datetime.now(UTC).isoformat(timespec="seconds")}
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                if fcntl is not None:
                    with suppress(OSError):  # a file system without locks
                        fcntl.flock(file, fcntl.LOCK_EX)
                os.write(file, _after_a_torn_line(file) + json.dumps(line).encode() + b"\n")
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise StoreUnavailable(f"the witness cannot be written to {path} ({error})") from error


def _after_a_torn_line(file: int) -> bytes:
    """What ends a line that a crash left incomplete."""
    size = os.fstat(file).st_size
    return b"" if size == 0 or os.pread(file, 1, size - 1) == b"\n" else b"\n"


def last(path: Path, name: str) -> Witness | None:
    """The newest witness of the deployment ``name`` in a file; None if there is none."""
    attested = read("witness", str(path), name) if path.exists() else {}
    if not attested:
        return None
    seq = max(attested)
    if len(attested[seq]) > 1:
        raise JournalCorrupt(
            f"{path} attests two different entries {seq} of {name!r}: there were two journals of this "
            "name. Find out which is the right one, and keep its witness only"
        )
    return Witness(name, seq, min(attested[seq]))


def read(argument: str, source: str, name: str) -> Attested:
    """What a file, or the answer of an http(s) address, says of the deployment ``name``."""
    hashes: defaultdict[int, set[str]] = defaultdict(set)
    lines = _text(argument, source).split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                said = json.loads(line)
                pair = said.get("receipt") or said
                seq, hash_ = int(pair["seq"]), bytes.fromhex(pair["hash"]).hex()
            except _NO_PAIR as error:
                if number == len(lines) or _is_torn(line):
                    continue  # a crash cut the line off while it was written
                remedy = f"line {number} is no witness and no receipt ({error!r})"
                raise InvalidInput(argument, source, remedy) from error
            if _is_about(said, name):
                hashes[seq].add(hash_)
    return {seq: frozenset(some) for seq, some in hashes.items()}


_NO_PAIR = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What reading a line that somebody made up can raise."""


def _is_torn(line: str) -> bool:
    return line.startswith("{") and not line.endswith("}")


def _is_about(said: dict[str, Any], name: str) -> bool:
    """Names may hold hyphens: ``shop-2-7-5be3c1a20f47`` is of ``shop-2``, not of ``shop``."""
    id_ = said.get("id")
    ours = re.compile(rf"{re.escape(name)}-\d+(-[0-9a-f]{{12}})?")
    return said.get("deployment", name) == name and (id_ is None or ours.fullmatch(str(id_)) is not None)


def _text(argument: str, source: str) -> str:
    try:
        if source.startswith(("http://", "https://")):
            with urllib.request.urlopen(source, timeout=PATIENCE) as answer:
                content: bytes = answer.read()
        else:
            content = Path(source).read_bytes()
        return content.decode()
    except (OSError, urllib.error.URLError, UnicodeError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # the answer that it holds
        raise InvalidInput(argument, source, f"cannot be read ({error})") from error
