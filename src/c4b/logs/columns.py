"""The meaning of a log's columns."""

from __future__ import annotations

from dataclasses import dataclass, fields

from c4b.errors import InvalidInput

_LATER = ("vectors", "baseline")


@dataclass(frozen=True, repr=False)
class Columns:
    """The names of a log's columns. Only declared columns are read and checked; the others are ignored.

    >>> Columns(reward="click", action="item", propensity="probability").names()
    ['click', 'item', 'probability']
    """

    reward: str | None = None
    """The reward of the executed action: a number in the declared range."""
    action: str | None = None
    """The executed action: a label of any type."""
    propensity: str | None = None
    """The probability with which the logging policy took the action, in (0, 1]."""
    policy_probability: str | None = None
    """The probability with which the evaluated policy would take the action, in [0, 1]."""
    weight: str | None = None
    """``policy_probability`` divided by ``propensity``, if the log holds the quotient instead."""
    time: str | None = None
    """Time of the row, never decreasing: a number, a date or a date and time."""
    id: str | None = None
    """An id that is different in every row."""
    candidates: str | None = None
    """A list of the labels that could be chosen, including the executed one."""
    vectors: str | None = None
    """A list of vectors: the features of each candidate, in the order of ``candidates``."""
    baseline: str | None = None
    """The incumbent's action, if it is not the same in all rows."""
    context: tuple[str, ...] = ()
    """Features of the user or the moment: numbers or labels."""
    rewards: tuple[str, ...] = ()
    """For full feedback, one column for each action: the reward that it earned or would have earned."""

    def __post_init__(self) -> None:
        used: dict[str, str] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("context", "rewards"):
                if isinstance(value, str) or not all(isinstance(name, str) for name in value):
                    raise InvalidInput(field.name, value, "must be a sequence of column names")
                object.__setattr__(self, field.name, tuple(value))
            elif value is not None and not isinstance(value, str):
                raise InvalidInput(field.name, value, "must be the name of a column")
            for name in self._of(field.name):
                if name in used and field.name != "rewards":
                    also = used[name]
                    raise InvalidInput(field.name, name, f"is declared as {also} already; name each once")
                used[name] = field.name
        if self.vectors is not None and self.candidates is None:
            raise InvalidInput("vectors", self.vectors, "needs a column of candidates, in the same order")

    def __repr__(self) -> str:
        """Leave out unused fields that were added later: interrupted replays have stored this text."""
        shown = [(field.name, getattr(self, field.name)) for field in fields(self)]
        kept = [f"{name}={value!r}" for name, value in shown if name not in _LATER or value is not None]
        return f"Columns({', '.join(kept)})"

    def _of(self, role: str) -> tuple[str, ...]:
        value = getattr(self, role)
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else value

    def names(self) -> list[str]:
        """Every declared column once, in the order of the fields."""
        return list(dict.fromkeys(name for field in fields(self) for name in self._of(field.name)))
