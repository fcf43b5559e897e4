"""Structured logs: one JSON object a line, with the request's id; never a token, never a query."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
logger = logging.getLogger("c4b.service")


class Lines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            "process": record.process,
        }
        asked = request_id.get()
        if asked is not None:
            told["request_id"] = asked
        told.update(getattr(record, "fields", {}))
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)  # ASCII: there are line ends beyond it


def configuration(level: str) -> dict[str, Any]:
    """For ``logging.config.dictConfig``; uvicorn applies it in every worker."""
    handler = {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}
    own = {"handlers": ["lines"], "level": level.upper(), "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "c4b.service.monitoring.request_log.Lines"}},
        "handlers": {"lines": handler},
        "loggers": {
            "c4b": own,
            "uvicorn": own,
            "uvicorn.error": {"level": "WARNING", "handlers": ["lines"], "propagate": False},
        },
    }


def say(event: str, **fields: Any) -> None:
    """One line for people and programs alike."""
    logger.info(event, extra={"fields": fields})


def plainly(text: str) -> None:
    """A line for whoever started the service, beside the log."""
    print(text, file=sys.stderr, flush=True)
