"""Errors on the wire: problem+json (RFC 9457) with the library's own words."""

from __future__ import annotations

from reprlib import Repr
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as RoutingError

from c4b import errors

MEDIA_TYPE = "application/problem+json"

STATUS: dict[type[errors.C4BError], int] = {
    errors.UnknownDecision: 404,
    errors.UnknownDeployment: 404,
    errors.PayloadTooLarge: 413,
    errors.OutcomeClosed: 409,
    errors.ContradictoryOutcome: 409,
    errors.ContradictoryRequest: 409,
    errors.NameTaken: 409,
    errors.HistoryClosed: 409,
    errors.NoSafeAction: 409,
    errors.StoreUnavailable: 503,
    errors.JournalCorrupt: 500,
    errors.SchemaVersion: 500,
    errors.InvalidInput: 422,
}
"""By the most special class that has an entry."""
_repr = Repr()  # of a large value a little: it is computed for whoever sends it
_AGAIN = {408: "1", 429: "5", 503: "1", 504: "1"}
"""Seconds after which trying again makes sense."""


class Refused(HTTPException):
    """The service's own refusal: no token, too slow, not JSON, ..."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(status, detail)
        self.kind = kind


def status_of(error: errors.C4BError) -> int:
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def response(status: int, kind: str, detail: str, **more: Any) -> JSONResponse:
    """``type`` is stable and made for programs, ``detail`` for people."""
    title = kind.replace("-", " ").capitalize()
    body = {"type": f"urn:c4b:problem:{kind}", "title": title, "status": status, "detail": detail, **more}
    headers = {"Retry-After": _AGAIN[status]} if status in _AGAIN else {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="c4b"'
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def refused(error: Refused) -> JSONResponse:
    return response(error.status_code, error.kind, error.detail)


def install(app: FastAPI) -> None:
    """Let every error leave as a problem."""

    @app.exception_handler(errors.C4BError)
    async def library(_: Request, error: errors.C4BError) -> JSONResponse:
        more = {}
        if isinstance(error, errors.InvalidInput):
            more = {"argument": error.argument, "value": error.shown, "remedy": error.remedy}
        return response(status_of(error), errors.kind(type(error)), str(error), **more)

    @app.exception_handler(Refused)
    async def own(_: Request, error: Refused) -> JSONResponse:
        return refused(error)

    @app.exception_handler(RequestValidationError)
    async def shape(_: Request, error: RequestValidationError) -> JSONResponse:
        found = [_told(each) for each in error.errors()[:20]]
        detail = "; ".join(map(_in_words, found))
        return response(422, "invalid-input", detail[:2000], errors=found)

    @app.exception_handler(RoutingError)
    async def routing(request: Request, error: RoutingError) -> JSONResponse:
        if error.status_code == 404:
            detail = f"{request.url.path} does not exist; /docs lists what does"
            return response(404, "no-such-page", detail[:500])
        headers, detail = dict(error.headers or {}), str(error.detail)
        if error.status_code == 405:  # the router knows one route; the same path may have several
            known = request.app.openapi()["paths"].get(getattr(request.scope.get("route"), "path", None))
            if known:
                headers["Allow"] = ", ".join(sorted(method.upper() for method in known))
            detail = f"{request.method} is not for {request.url.path}; use {headers.get('Allow', 'GET')}"
        made = response(error.status_code, "http-error", detail[:500])
        made.headers.update(headers)
        return made


def _told(error: Any) -> dict[str, str]:
    if error["type"] == "json_invalid":
        return {"argument": "body", "remedy": f"must be JSON ({error['ctx']['error']})"}
    place = [part for part in error["loc"] if part not in ("body", "query", "path", "header")]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    told = {"argument": name or "body", "remedy": str(error["msg"])}
    if error["type"] != "missing":
        told["value"] = _repr.repr(error["input"])
    return told


def _in_words(told: dict[str, str]) -> str:
    value = f" = {told['value']}" if "value" in told else ""
    return f"{told['argument']}{value}: {told['remedy']}"
