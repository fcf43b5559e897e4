"""The parts that ``c4b._compilation.specialised`` can leave out of kernels."""

BOXES: bool = True
"""Sets that are boxes."""
EIGENBASES: bool = True
"""Sets that keep an eigenbasis."""
INVERSES: bool = True
"""Sets that keep inverses of their shapes, not an eigenbasis."""
OTHER_LEDGERS: bool = True
"""All ledgers but a bank with checkpoints and none at all; means that are told."""
COMPETITION: bool = True
"""Choices by more than the UCB and the margins: thrift, a baseline that competes, optimistic rounds."""
UNREAD: bool = True
"""Sums of contrasts for ledgers that make no claim by them: a state shows them, a simulation does not."""
