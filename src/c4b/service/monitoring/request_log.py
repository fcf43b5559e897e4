"""Structured logs: one JSON object a line, with the request's id, without secrets and query strings."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
logger = logging.getLogger("c4b.service")
_encode = json.JSONEncoder(default=str).encode  # ASCII, because Unicode has further line separators


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            "process": record.process,
        }
        current = request_id.get()
        if current is not None:
            values["request_id"] = current
        values.update(getattr(record, "fields", {}))
        if record.exc_info:
            values["error"] = self.formatException(record.exc_info)
        return _encode(values)


def configuration(level: str) -> dict[str, Any]:
    """Return the argument of ``logging.config.dictConfig``, which uvicorn applies in every worker."""
    handler = {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}
    own = {"handlers": ["stderr"], "level": level.upper(), "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "c4b.service.monitoring.request_log.JsonFormatter"}},
        "handlers": {"stderr": handler},
        "loggers": {
            "c4b": own,
            "uvicorn": own,
            "uvicorn.error": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        },
    }


def log_event(event: str, **fields: Any) -> None:
    """Log an event with further fields; no search for the line of the caller, which nobody reads."""
    if logger.isEnabledFor(logging.INFO):
        record = logging.LogRecord(logger.name, logging.INFO, "", 0, event, None, None)
        record.fields = fields
        logger.handle(record)


def print_notice(text: str) -> None:
    """Print a line for the person who started the service. It is not JSON and not part of the log."""
    print(text, file=sys.stderr, flush=True)
