"""Structured logs: one JSON object a line, with the request's id, without secrets and query strings."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO, cast

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
logger = logging.getLogger("c4b.service")
_encode = json.JSONEncoder(default=str).encode  # ASCII, because Unicode has further line separators
_quoted = json.encoder.encode_basestring_ascii


class EventRecord(logging.LogRecord):
    """A record of an event. No line, thread or task is searched for: there is one for every request."""

    def __init__(self, event: str, fields: dict[str, Any]) -> None:
        self.__dict__.update(_BLANK)
        self.msg = event
        self.created = time.time()
        self.msecs = self.created % 1.0 * 1000.0
        self.process = os.getpid()
        self.fields = fields


_BLANK = logging.LogRecord(logger.name, logging.INFO, "", 0, "", None, None).__dict__


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        said = _said(record.levelname, record.name, record.getMessage(), record.process)
        line = [f'"time": "{_iso_8601(record.created)}", {said}']
        current = request_id.get()
        if current is not None:
            line.append(f'"request_id": {_quoted(current)}')
        fields: dict[str, Any] = getattr(record, "fields", {})
        line += [f"{_key(key)}{_json(value)}" for key, value in fields.items()]
        if record.exc_info:
            line.append(f'"error": {_quoted(self.formatException(record.exc_info))}')
        return f"{{{', '.join(line)}}}"


@lru_cache(64)
def _said(level: str, name: str, event: str, process: int | None) -> str:
    """Most lines are of one event."""
    return (
        f'"level": "{level.lower()}", "logger": {_quoted(name)}, "event": {_quoted(event)}, '
        f'"process": {_json(process)}'
    )


@lru_cache(64)
def _key(name: str) -> str:
    return f"{_quoted(name)}: "


def _json(value: object) -> str:
    """Text and numbers, which most values are, without setting up an encoder."""
    kind = type(value)
    if kind is str:
        return _quoted(cast(str, value))
    if kind is int or (kind is float and math.isfinite(cast(float, value))):
        return repr(value)
    return _encode(value)


def _iso_8601(seconds: float) -> str:
    """With milliseconds; most lines are of the same second as the one before.

    >>> _iso_8601(0.25)
    '1970-01-01T00:00:00.250+00:00'
    """
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1000.0):03d}+00:00"


@lru_cache(1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes records as lines. Standard error sends every line by itself and needs no flush."""

    def flush(self) -> None:
        if not getattr(self.stream, "line_buffering", False):
            super().flush()


def configuration(level: str) -> dict[str, Any]:
    """Return the argument of ``logging.config.dictConfig``, which uvicorn applies in every worker."""
    handler = {
        "class": "c4b.service.monitoring.request_log.LineHandler",
        "formatter": "json",
        "stream": "ext://sys.stderr",
    }
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
    """Log an event with further fields."""
    if logger.isEnabledFor(logging.INFO):
        logger.handle(EventRecord(event, fields))


def print_notice(text: str) -> None:
    """Print a line for the person who started the service. It is not JSON and not part of the log."""
    with suppress(OSError):  # a full disk under the log is no reason not to serve
        print(text, file=sys.stderr, flush=True)
