"""Logs of past decisions: :func:`read_log` checks every row of a file or frame against declared
columns."""

from c4b.logs.columns import Columns
from c4b.logs.log import Log, read_log

__all__ = ["Columns", "Log", "read_log"]
