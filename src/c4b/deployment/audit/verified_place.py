"""The point up to which an audit verified a journal: a small file from which the next audit continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from c4b._whole_files import written_whole
from c4b.errors import InvalidInput


class VerifiedPlace(NamedTuple):
    """Every entry up to number ``seq`` was verified; ``hash`` is that entry's."""

    name: str
    seq: int
    hash: str

    def write(self, path: Path) -> None:
        """Replace the file in one step, so that it is never incomplete."""
        with written_whole(path) as draft:
            draft.write_text(json.dumps(self._asdict()) + "\n")

    @classmethod
    def read(cls, path: Path, name: str) -> VerifiedPlace | None:
        """The place in the file; None without a file."""
        if not path.exists():
            return None
        try:
            place = cls(**json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            remedy = (
                f"must be a file that an audit wrote ({error}); remove it to audit from the beginning"
            )
            raise InvalidInput("resume", str(path), remedy) from error
        if place.name != name or not isinstance(place.seq, int):
            remedy = f"must be of an audit of {name!r}, not of {place.name!r}"
            raise InvalidInput("resume", str(path), remedy)
        return place
