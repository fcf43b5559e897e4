"""Judge another policy from a log of the present one, at any moment and without assumptions on rewards
beyond their range: :func:`evaluate` a whole log, or feed an :class:`OffPolicyGate` as rows arrive."""

from c4b.offpolicy.effective_sample_size import effective_sample_size
from c4b.offpolicy.gate import OffPolicyGate, OffPolicyReport, evaluate

__all__ = ["OffPolicyGate", "OffPolicyReport", "effective_sample_size", "evaluate"]
