"""What an audit found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


class Finding(Exception):
    """What does not hold, of the entry at hand or of the given one."""

    def __init__(self, finding: str, entry: int | None = None) -> None:
        super().__init__(finding)
        self.entry = entry


@dataclass(slots=True)
class Report:
    """An audit's verdict: ``print`` it, or ask ``clean``."""

    name: str
    level: str = "recomputed"
    """``"recomputed"``: every decision follows from the raw data by independent arithmetic.
    ``"replayed"``: a gate in plain Python, which decided every round again, bit for bit."""
    entries: int = 0
    decisions: int = 0
    fallbacks: int = 0
    held: int = 0
    """Fallbacks by order (shadow, freeze, ramp) where the gate chose a candidate."""
    orders: int = 0
    unchecked_choices: int = 0
    """Decisions of which only what was executed is on record: its certificate was checked, not the
    choice."""
    outcomes: int = 0
    observations: int = 0
    precise: int = 0
    """Decisions recomputed in 50 digits."""
    snapshots: int = 0
    replay_differences: int = 0
    """Fingerprints that the fast path does not reproduce to the last bit on this machine."""
    largest_error: float = 0.0
    """Largest relative difference between the recorded numbers and the independent ones."""
    attested: int = 0
    """Entries that witnesses or receipts attest, and that are as they say."""
    sealed: bool = False
    """Whether the seal of every entry was checked with the deployment's key."""
    hash: str = ""
    finding: str | None = None
    entry: int | None = None
    """Number of the first entry that does not hold."""

    @property
    def clean(self) -> bool:
        return self.finding is None

    def to_dict(self) -> dict[str, Any]:
        return {"clean": self.clean, **asdict(self)}

    def __str__(self) -> str:
        counts = (
            f"{self.entries} entries, {self.decisions} decisions ({self.fallbacks} fallbacks, "
            f"{self.precise} in 50 digits), {self.outcomes} outcomes, {self.snapshots} snapshots"
        )
        if self.finding is not None:
            where = "" if self.entry is None else f"Entry {self.entry} "
            return f"{self.name}: NOT CLEAN. {where}{self.finding}. Before it: {counts}."
        if self.unchecked_choices:
            counts += (
                f"; {self.unchecked_choices} choices not checked, only what was executed is on record"
            )
        sealed = ", sealed" if self.sealed else ""
        attested = f"{self.attested} entries attested; " if self.attested else ""
        return (
            f"{self.name}: clean, {self.level}{sealed}. {counts}; largest difference "
            f"{self.largest_error:.1e}; {attested}last hash {self.hash[:16]}."
        )
