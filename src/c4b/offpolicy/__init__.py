"""Evaluates another policy from a log of the present one, with bounds that hold at any time.

The only assumption on rewards is their range. :func:`evaluate` takes a whole log; :class:`OffPolicyGate`
takes rows as they arrive.
"""

from c4b.offpolicy.effective_sample_size import effective_sample_size
from c4b.offpolicy.gate import OffPolicyGate, OffPolicyReport, evaluate

__all__ = ["OffPolicyGate", "OffPolicyReport", "effective_sample_size", "evaluate"]
