"""Certificate values -> bank and prefix. Never sees a reward: that separation is the safety proof."""

from c4b.ledger.minimum_reserve import minimum_reserve

__all__ = ["minimum_reserve"]
