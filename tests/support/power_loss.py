"""What a disk may hold after the power was lost.

Of everything written since the last sync of a file, any part may be there: all, nothing, what came first,
some writes without others before them, single sectors of a write, a part of one. What was written before
a sync is there. Until the folder is synced, a new file may be gone and a removed one may be there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from support.traced_sqlite import Event

SECTOR = 512
WAYS = ("nothing", "everything", "first", "some", "sectors", "torn")


class Disk:
    """Files as they were synced, and what was done to them since."""

    def __init__(self) -> None:
        self.synced: dict[str, bytes] = {}
        self.listed: set[str] = set()
        """Those that the synced folder lists."""
        self.since: list[Event] = []

    def do(self, event: Event) -> None:
        """``write``, ``truncate``, ``sync`` or ``delete``."""
        if event.kind == "sync":
            self._settle(event.path, len(self.since))
            self.synced.setdefault(event.path, b"")
        else:
            self.since.append(event)
        if event.kind in ("sync", "delete") and event.place:
            removed = {each.path: n for n, each in enumerate(self.since, 1) if each.kind == "delete"}
            for path, end in sorted(removed.items(), key=lambda item: -item[1]):
                self._settle(path, end)
            self.listed = self.synced.keys() | {each.path for each in self.since}

    def _settle(self, path: str, end: int) -> None:
        """What was done to a file is there, up to a place in ``since``."""
        before, after = self.since[:end], self.since[end:]
        self.synced = _after(self.synced, [each for each in before if each.path == path])
        self.since = [each for each in before if each.path != path] + after

    def lost(self, way: str, rng: random.Random) -> dict[str, bytes]:
        """The files after a loss of power."""
        kept = list(_kept(self.since, way, rng))
        undone = {each.path for each in self.since if each.kind == "delete"}
        undone -= {each.path for each in kept if each.kind == "delete"}
        files = _after(self.synced, [each for each in kept if each.path not in undone])
        return {
            path: content
            for path, content in files.items()
            if path in self.listed or way == "everything" or rng.random() < 0.5
        }


def _kept(events: list[Event], way: str, rng: random.Random) -> Iterator[Event]:
    if way == "everything":
        yield from events
    elif way == "first":
        yield from events[: rng.randint(0, len(events))]
    elif way == "some":
        yield from (each for each in events if rng.random() < 0.5)
    elif way == "sectors":
        for each in events:
            for sector in _parts(each):
                if rng.random() < 0.7:
                    yield sector
    elif way == "torn" and events:
        end = rng.randrange(len(events))
        yield from events[:end]
        size = rng.randint(0, len(events[end].content))
        yield events[end]._replace(content=events[end].content[:size])


def _parts(event: Event) -> list[Event]:
    if event.kind != "write":
        return [event]
    starts = range(0, len(event.content), SECTOR)
    return [
        event._replace(place=event.place + start, content=event.content[start : start + SECTOR])
        for start in starts
    ]


def _after(files: dict[str, bytes], events: list[Event]) -> dict[str, bytes]:
    changed: dict[str, bytearray] = {}
    gone = set()
    for kind, path, place, content in events:
        if kind == "delete":
            gone.add(path)
            changed.pop(path, None)
            continue
        if path not in changed:
            changed[path] = bytearray() if path in gone else bytearray(files.get(path, b""))
        file = changed[path]
        if kind == "truncate":
            del file[place:]
        else:
            file.extend(bytes(max(place + len(content) - len(file), 0)))
            file[place : place + len(content)] = content
    kept = {path: content for path, content in files.items() if path not in gone}
    return kept | {path: bytes(file) for path, file in changed.items()}


def write(files: dict[str, bytes], folder: Path) -> None:
    """Put the files, by their names, into a folder."""
    for path, content in files.items():
        (folder / Path(path).name).write_bytes(content)
