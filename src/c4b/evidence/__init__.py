"""Observations -> a confidence set -> bounds of linear functions. Knows no budget, baseline or time."""

from c4b.evidence.evidence import Evidence
from c4b.evidence.model import CONFIDENCES, LinearModel

__all__ = ["CONFIDENCES", "Evidence", "LinearModel"]
