"""Error responses: problem+json (RFC 9457) with the messages of the library."""

from __future__ import annotations

from reprlib import Repr
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as RoutingError

from c4b import errors
from c4b.service import schemas
from c4b.service.monitoring import request_log

MEDIA_TYPE = "application/problem+json"

STATUS: dict[type[errors.C4BError], int] = {
    errors.UnknownDecision: 404,
    errors.UnknownDeployment: 404,
    errors.PayloadTooLarge: 413,
    errors.OutcomeClosed: 409,
    errors.ContradictoryOutcome: 409,
    errors.LaterOutcomeKnown: 409,
    errors.ContradictoryRequest: 409,
    errors.NameTaken: 409,
    errors.HistoryClosed: 409,
    errors.NoSafeAction: 409,
    errors.DecisionsClosed: 409,
    errors.EntryArchived: 409,
    errors.StoreUnavailable: 503,
    errors.JournalCorrupt: 500,
    errors.SchemaVersion: 500,
    errors.InvalidInput: 422,
}
"""HTTP status of an error. The most specific class of the error that has an entry counts."""
_NOT_ARGUMENTS = ("body", "query", "path", "header", schemas.PLAIN, schemas.SLATE)
_short_repr = Repr()  # shortens large values while it reads them, so that they cost nothing
_RETRY_AFTER = {408: "1", 429: "5", 503: "1", 504: "1"}
"""Seconds after which a client should try again."""


class Refused(HTTPException):
    """A refusal by the service itself, not by the library: no token, too slow, not JSON."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(status, detail)
        self.kind = kind


def status_of(error: errors.C4BError) -> int:
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def problem_response(status: int, kind: str, detail: str, **more: Any) -> JSONResponse:
    """Return a problem+json response. Programs rely on its ``type``, people read its ``detail``."""
    title = kind.replace("-", " ").capitalize()
    body = {"type": f"urn:c4b:problem:{kind}", "title": title, "status": status, "detail": detail, **more}
    headers = {"Retry-After": _RETRY_AFTER[status]} if status in _RETRY_AFTER else {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="c4b"'
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def refusal_response(error: Refused) -> JSONResponse:
    return problem_response(error.status_code, error.kind, error.detail)


def library_error(error: errors.C4BError) -> JSONResponse:
    more, status = {}, status_of(error)
    if isinstance(error, errors.InvalidInput):
        more = {"argument": error.argument, "value": error.shown, "remedy": error.remedy}
    if status >= 500:
        request_log.logger.error(
            "%s", error
        )  # for who operates the service: a client may keep it to itself
    return problem_response(status, errors.kind(type(error)), str(error), **more)


def validation_error(error: RequestValidationError) -> JSONResponse:
    described = [_described(each) for each in error.errors()[:20]]
    detail = "; ".join(map(_sentence, described))
    return problem_response(422, "invalid-input", detail[:2000], errors=described)


def without_details(error: errors.C4BError) -> Refused:
    """The refusal for a caller without a token. The message may name hosts and paths; the log has it."""
    request_log.logger.error("%s", error)
    request = request_log.request_id.get()
    detail = f"the store does not answer as it should; the log has the reason by request id {request}"
    return Refused(status_of(error), errors.kind(type(error)), detail)


def install(app: FastAPI) -> None:
    """Register handlers that turn every error into problem+json."""

    @app.exception_handler(errors.C4BError)
    async def from_library(_: Request, error: errors.C4BError) -> JSONResponse:
        return library_error(error)

    @app.exception_handler(Refused)
    async def refusal(_: Request, error: Refused) -> JSONResponse:
        return refusal_response(error)

    @app.exception_handler(RequestValidationError)
    async def not_valid(_: Request, error: RequestValidationError) -> JSONResponse:
        return validation_error(error)

    @app.exception_handler(RoutingError)
    async def routing_error(request: Request, error: RoutingError) -> JSONResponse:
        if error.status_code == 404:
            detail = f"{request.url.path} does not exist; /docs lists what does"
            return problem_response(404, "no-such-page", detail[:500])
        headers, detail = dict(error.headers or {}), str(error.detail)
        if error.status_code == 405:  # Starlette lists the methods of one route, the path may have more
            route: Any = request.scope.get("route")
            operations = request.app.openapi()["paths"].get(getattr(route, "path", None))
            if operations:
                methods = {*map(str.upper, operations), *(route.methods or ())}
                headers["Allow"] = ", ".join(sorted(methods))
            detail = f"{request.method} is not for {request.url.path}; use {headers.get('Allow', 'GET')}"
        response = problem_response(error.status_code, "http-error", detail[:500])
        response.headers.update(headers)
        return response


def _described(error: Any) -> dict[str, str]:
    """Argument, remedy and value of one of pydantic's validation errors."""
    if error["type"] == "json_invalid":
        return {"argument": "body", "remedy": f"must be JSON ({error['ctx']['error']})"}
    path = [part for part in error["loc"] if part not in _NOT_ARGUMENTS]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    described = {"argument": name or "body", "remedy": str(error["msg"])}
    if error["type"] != "missing":
        described["value"] = _short_repr.repr(error["input"])
    return described


def _sentence(described: dict[str, str]) -> str:
    value = f" = {described['value']}" if "value" in described else ""
    return f"{described['argument']}{value}: {described['remedy']}"
