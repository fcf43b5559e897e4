"""Checks whether a log meets the assumptions of a linear model: :func:`diagnose`."""

from c4b.diagnostics.diagnose import Diagnosis, diagnose
from c4b.diagnostics.drift import Period
from c4b.diagnostics.finding import Finding
from c4b.diagnostics.linearity import Group
from c4b.diagnostics.ridge_fit import Effect

__all__ = ["Diagnosis", "Effect", "Finding", "Group", "Period", "diagnose"]
