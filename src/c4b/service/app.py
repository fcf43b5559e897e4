"""The ASGI application: routes, middleware, metrics, health checks and the dashboard."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from sqlalchemy import URL, make_url
from starlette.concurrency import run_in_threadpool
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ASGIScope

from c4b.deployment import Status
from c4b.errors import C4BError, StoreUnavailable
from c4b.journal.sql import server_concerns, sql_schema
from c4b.journal.sql.sql_store import Store
from c4b.service import schemas, temporary_folders
from c4b.service.access.authorization import requires
from c4b.service.access.rate_limits import RateLimit
from c4b.service.access.token_verifier import TokenVerifier
from c4b.service.access.tokens import Scope
from c4b.service.audit_process import AuditProcess
from c4b.service.middleware import RequestMiddleware
from c4b.service.monitoring import metrics, request_log
from c4b.service.open_deployments import OpenDeployments, load_kernels
from c4b.service.routing import order_routes, problems, routes
from c4b.service.routing.direct_answers import DirectAnswers
from c4b.service.routing.hot_routes import HotRoutes
from c4b.service.routing.request_body import BodyParser
from c4b.service.settings import Settings
from c4b.service.witness_writer import WitnessWriter

DASHBOARD = Path(__file__).parent / "dashboard"
"""Folder of the dashboard's files."""


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: routes.PROBLEMS[status] for status in statuses}


# Load balancers probe by HEAD. Those routes come first: by the first of a path a 405 finds its ``Allow``.
_public_routes = APIRouter(responses=_problems(403))
_metrics_routes = APIRouter(
    route_class=requires(Scope.read, without_store=True), responses=_problems(401, 403, 500, 503, 504)
)


@_public_routes.get("/healthz", tags=["operation"], summary="Is the process alive?")
@_public_routes.head("/healthz", include_in_schema=False)
async def alive() -> schemas.Done:
    """The process answers. The store is not checked."""
    return schemas.Done()


@_public_routes.get(
    "/readyz", tags=["operation"], summary="Can it decide?", responses=_problems(500, 503, 504)
)
@_public_routes.head("/readyz", include_in_schema=False)
async def ready(request: Request) -> schemas.Done:
    """The store can be read, so decisions can be made."""
    try:
        await run_in_threadpool(request.app.state.deployments.names)
    except C4BError as error:
        raise problems.without_details(error) from error
    return schemas.Done()


@_metrics_routes.get(
    "/metrics",
    tags=["operation"],
    summary="Prometheus metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
@_metrics_routes.head("/metrics", include_in_schema=False)
async def prometheus_metrics(request: Request) -> Response:
    """Needs a read token; shows the deployments that the token may read. While the store is not
    available, requests only."""
    state = request.app.state
    states: list[Status] | None = None
    broken: Iterable[str] = ()
    try:
        if (unread := getattr(request.state, "store_error", None)) is not None:
            raise unread
        read = await run_in_threadpool(routes.readable_states, state.deployments, request.state.grant)
        states, broken = [status for status, _ in read[0]], read[1]
    except C4BError as error:
        request_log.logger.error("%s", error)
    text = await run_in_threadpool(state.metrics.render, states, broken)
    return Response(text, media_type=metrics.CONTENT_TYPE)


@_public_routes.get("/", include_in_schema=False)
@_public_routes.head("/", include_in_schema=False)
async def dashboard(request: Request) -> HTMLResponse:
    """The page, with the store that it shows. Names and passwords in a store's address are left out."""
    page = (DASHBOARD / "index.html").read_text(encoding="utf-8")
    return HTMLResponse(page.replace("{store}", escape(request.app.state.shown_store)))


@_public_routes.get("/docs", include_in_schema=False)
@_public_routes.head("/docs", include_in_schema=False)
async def api_documentation() -> HTMLResponse:
    """Its addresses are relative: a proxy may serve it by https, and below a path."""
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title="Reserve-C4B",
        swagger_js_url="swagger/swagger-ui-bundle.js",
        swagger_css_url="swagger/swagger-ui.css",
        swagger_favicon_url="static/favicon.svg",
        swagger_ui_parameters={"tryItOutEnabled": True, "persistAuthorization": False},
    )


class _Service(FastAPI):
    """The framework's application. Requests of two routes do not pass through it."""

    hot_routes = HotRoutes()
    short_way: ASGIApp
    """``hot_routes`` within the middleware that every request has."""
    direct_answers: DirectAnswers
    """The same for plain requests; ``TimeLimitedProtocol`` asks for it."""

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if self.hot_routes.takes(scope):
            scope["app"] = self
            await self.short_way(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create(settings: Settings, has_tables: bool = False) -> FastAPI:
    """Return the application over one store. The store's tables are created if they do not exist, unless
    the caller has done so."""
    request_metrics = metrics.RequestMetrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if not has_tables:
            create_tables(settings.store)
        temporary_folders.remove_leftovers()
        load_kernels()
        app.state.body_parser = BodyParser(settings.body_bytes)
        app.state.deployments = OpenDeployments(settings)
        app.state.token_verifier = TokenVerifier(app.state.deployments.backend.store)
        try:  # read the tokens before the store may become unavailable
            app.state.token_verifier.grant(None)
        except StoreUnavailable as error:  # a worker in place of another one: it answers 503 until then
            request_log.logger.error("%s", error)
        app.state.audit_process = AuditProcess(settings.store, settings.witness)
        writer = None
        if settings.witness is not None:
            writer = WitnessWriter(app.state.deployments, settings.witness, settings.witness_seconds)
        try:
            yield
        finally:
            app.state.audit_process.close()
            if writer is not None:
                writer.stop()
            app.state.deployments.close()

    async def local_only() -> bool:
        """Whether only local requests are accepted, because no token exists."""
        verifier: TokenVerifier = app.state.token_verifier
        try:
            stale = verifier.stale
            return (
                await run_in_threadpool(lambda: verifier.unprotected) if stale else verifier.unprotected
            )
        except C4BError:  # the store is unavailable and no token is known
            return True

    app = _Service(
        title="Reserve-C4B",
        version=version("reserve-c4b"),
        description="Conservative bandits: decisions with a certified floor under performance.",
        lifespan=lifespan,
        servers=[{"url": "."}],  # where the document is: proxies may serve it below a path
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.metrics, app.state.busy = request_metrics, False
    app.state.shown_store = shown_store(settings.store)
    app.state.token_rates, app.state.failed_authorizations = RateLimit(), RateLimit()
    problems.install(app)
    for router in (order_routes.router, *routes.routers, _public_routes, _metrics_routes):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=DASHBOARD), name="static")
    app.mount("/swagger", StaticFiles(packages=[("fastapi_swagger", "resources")]), name="swagger")
    around: dict[str, Any] = {
        "body_bytes": settings.body_bytes,
        "seconds": settings.seconds,
        "local_only": local_only,
        "record": request_metrics.record,
    }
    app.add_middleware(RequestMiddleware, **around)
    app.short_way = short_way = RequestMiddleware(app.hot_routes, **around)
    app.direct_answers = DirectAnswers(app.state, app.hot_routes, short_way)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # as FastAPI documents it
    return app


SWITCH_SECONDS = 0.001
"""How long a thread waits for the interpreter before it asks for it. SQLite gives it away at every
statement, so with Python's 5 ms a commit beside a busy event loop takes ten times as long."""


def _share_interpreter() -> None:
    """Let the threads that commit get on beside the event loop. As ``_collect_garbage_rarely``, this
    applies to the whole process."""
    sys.setswitchinterval(SWITCH_SECONDS)


def _collect_garbage_rarely() -> None:
    """Keep garbage collection short: a full collection takes 80 ms, in which no request is answered.

    Objects that exist by now are never examined again. Few later objects are cyclic, and examining
    10,000 of them takes little time. This applies to the whole process, which must do nothing but serve.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def _end_with_supervisor() -> None:
    """Stop this worker when the process that started it is gone, even if that was killed."""
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return

    def watch() -> None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="c4b-supervisor", daemon=True).start()


def shown_store(url: str) -> str:
    """A store's address as everybody may read it: without user, password and options, from any folder."""
    address = make_url(url)
    kind, database = address.drivername.partition("+")[0], address.database
    if kind == "sqlite" and database:
        database = str(Path(database).absolute())
    return URL.create(kind, host=address.host, port=address.port, database=database).render_as_string()


def create_tables(url: str) -> list[str]:
    """Create the store's tables unless they exist; returns what its operator should know of it."""
    store = Store(url, create=True)
    try:
        with store.administering() as connection:
            sql_schema.prepare(connection)
            return server_concerns.concerns(connection)
    finally:
        store.close()


def from_environment() -> FastAPI:
    """Return the application of a worker process; see ``c4b.service.serving.server``."""
    settings = Settings.from_environment()
    _end_with_supervisor()
    load_kernels()
    _collect_garbage_rarely()
    _share_interpreter()
    return create(settings, has_tables=True)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document with problem+json and token authentication added to every route."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        components = document.setdefault("components", {})
        components["schemas"]["Problem"] = schemas.Problem.model_json_schema()
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in document["paths"].items():
            for operation in operations.values():
                if path not in ("/healthz", "/readyz"):
                    operation["security"] = [{"token": []}]
        app.openapi_schema = document
    return app.openapi_schema
