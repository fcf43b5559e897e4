"""The application: routes, guard, metrics, health checks and the page."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi_swagger import patch_fastapi
from starlette.concurrency import run_in_threadpool
from starlette.staticfiles import StaticFiles

from c4b.errors import C4BError
from c4b.journal import sql_schema as schema
from c4b.journal.sql_store import Store
from c4b.service import problems, routes
from c4b.service import schemas as messages
from c4b.service.authorization import behind
from c4b.service.middleware import Guard
from c4b.service.monitoring import metrics
from c4b.service.open_deployments import Shelf, warm
from c4b.service.settings import Settings
from c4b.service.tokens import Gatekeeper, Scope

PAGE = Path(__file__).parent / "dashboard"


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: routes.PROBLEMS[status] for status in statuses}


_open = APIRouter(responses=_problems(403))
_measured = APIRouter(route_class=behind(Scope.read), responses=_problems(401, 403, 500, 503, 504))


@_open.get("/healthz", tags=["operation"], summary="Alive?")
async def alive() -> messages.Done:
    """The process answers. Says nothing about the store."""
    return messages.Done()


@_open.get("/readyz", tags=["operation"], summary="Ready?", responses=_problems(500, 503, 504))
async def ready(request: Request) -> messages.Done:
    """The store can be read, so decisions can be made."""
    await run_in_threadpool(request.app.state.shelf.names)
    return messages.Done()


@_measured.get(
    "/metrics",
    tags=["operation"],
    summary="Prometheus metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def measured(request: Request) -> Response:
    """Needs a read token, as everything that tells about deployments."""
    app = request.app.state
    states, _ = await run_in_threadpool(routes.readable, app.shelf, request.state.grant)
    page = await run_in_threadpool(app.meter.page, [state for state, _ in states])
    return Response(page, media_type=metrics.CONTENT_TYPE)


@_open.get("/", include_in_schema=False)
async def page() -> FileResponse:
    return FileResponse(PAGE / "index.html")


def create(settings: Settings) -> FastAPI:
    """The application over one store, whose tables are made if they are not there."""
    meter = metrics.Meter()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        prepare(settings.store)
        warm()
        _rarely_collect()
        app.state.shelf = Shelf(settings)
        app.state.keeper = Gatekeeper(app.state.shelf.store)
        app.state.keeper.grant(None)  # what it knows once, it knows while the store is away
        try:
            yield
        finally:
            app.state.shelf.close()

    async def local_only() -> bool:
        keeper: Gatekeeper = app.state.keeper
        try:
            return await run_in_threadpool(lambda: keeper.open) if keeper.stale else keeper.open
        except C4BError:  # no telling: no token is known
            return True

    app = FastAPI(
        title="Reserve-C4B",
        version=version("reserve-c4b"),
        description="Conservative bandits: decisions with a certified floor under performance.",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        telemetry={"tracing": False, "metrics": False},
    )
    app.state.meter, app.state.busy = meter, False
    problems.install(app)
    for router in (*routes.routers, _open, _measured):
        app.include_router(router)
    offline = {"tryItOutEnabled": True, "persistAuthorization": False}
    patch_fastapi(app, redirect_from_root_to_docs=False, swagger_ui_parameters=offline)
    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    app.add_middleware(
        Guard,
        body_bytes=settings.body_bytes,
        seconds=settings.seconds,
        local_only=local_only,
        measure=meter.measure,
    )
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _rarely_collect() -> None:
    """To look for cyclic garbage in all that is loaded takes 80 ms, during which nobody is answered.

    What is there by now stays; of what comes later little is cyclic, and 10,000 objects take a moment.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def prepare(url: str) -> None:
    """Make the store's tables unless they are there."""
    store = Store(url, create=True)
    try:
        with store.administering() as connection:
            schema.prepare(connection)
    finally:
        store.close()


def from_environment() -> FastAPI:
    """For worker processes; see ``c4b.service.serving.server``."""
    return create(Settings.from_environment())


def _described(app: FastAPI) -> dict[str, Any]:
    """OpenAPI with what the guard and the tokens add to every route."""
    if app.openapi_schema is None:
        told = FastAPI.openapi(app)
        components = told.setdefault("components", {})
        components["schemas"]["Problem"] = messages.Problem.model_json_schema()
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in told["paths"].items():
            for operation in operations.values():
                if path not in ("/healthz", "/readyz"):
                    operation["security"] = [{"token": []}]
        app.openapi_schema = told
    return app.openapi_schema
