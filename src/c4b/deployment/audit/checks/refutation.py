"""Whether the data contradict the model, as far as rounding lets an audit decide it."""

from __future__ import annotations

from typing import NamedTuple


class Refutation(NamedTuple):
    """Both stay, as an alarm does, whatever is observed later."""

    surely: bool = False
    perhaps: bool = False
    """Rounding decides, or decided once."""

    def weighed(self, excess: float, near: float) -> Refutation:
        """excess: by how much data exceed what the model allows. near: what rounding can make of it."""
        return Refutation(self.surely or excess > near, self.perhaps or not excess < -near)
