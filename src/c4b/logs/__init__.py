"""Logs of past decisions, checked row by row against declared columns.

:func:`read_log` reads a log into memory; :func:`open_log` leaves the rows in their file, for logs of
millions of rows.
"""

from c4b.logs.columns import Columns
from c4b.logs.log import Log, read_log
from c4b.logs.streamed_log import StreamedLog, open_log

__all__ = ["Columns", "Log", "StreamedLog", "open_log", "read_log"]
