"""What is answered without a task, and what is left to one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Scope

from c4b.errors import NoSafeAction
from c4b.service.access.token_verifier import UNPROTECTED, Grant
from c4b.service.access.tokens import Scope as Access
from c4b.service.middleware import RequestMiddleware
from c4b.service.routing.direct_answers import DirectAnswers
from c4b.service.routing.hot_routes import HotRoutes
from c4b.service.serving.http_protocol import BEGAN

PATH = "/v1/deployments/shop/decisions/shop-1/outcome"
BODY = b'{"reward": 0.5}'
DONE = {"done": True}


class Deployments:
    """One open deployment whose commits end when the test says so."""

    def __init__(self) -> None:
        self.results: list[asyncio.Future[None]] = []
        self.closed = False

    def get(self, name: str) -> Deployments | None:
        return self if name == "shop" and not self.closed else None

    def begin_outcome(self, *_: object) -> asyncio.Future[None]:
        self.results.append(asyncio.get_running_loop().create_future())
        return self.results[-1]


class Verifier:
    stale = False
    unprotected = True
    found: Grant | None = UNPROTECTED

    def claim_refresh(self) -> bool:
        return False

    def grant(self, token: str | None) -> Grant | None:
        return self.found


class Exchange:
    """A request, and what became of it."""

    def __init__(self, app: RequestMiddleware, *headers: tuple[bytes, bytes], reads: bool = True) -> None:
        self.app, self.reads = app, reads
        self.answers: list[bytes] = []
        self.task: asyncio.Task[None] | None = None
        given = headers or ((b"host", b"localhost"), (b"content-type", b"application/json"))
        self.scope: Scope = {
            "type": "http",
            "method": "PUT",
            "path": PATH,
            "headers": [*given, (b"content-length", b"%d" % len(BODY))],
            "client": ("127.0.0.1", 1),
            "state": {},
            BEGAN: time.perf_counter(),
        }

    def answer(self, headers: bytes, body: bytes) -> bool:
        if self.reads:
            assert b"x-request-id: " in headers
            self.answers.append(body)
        return self.reads

    def start_task(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self.app(self.scope, self.receive, self.send))

    async def receive(self) -> Message:
        raise AssertionError("the body was read already")

    async def send(self, message: Message) -> None:
        self.answers.append(b"%d" % message["status"] if "status" in message else message["body"])


class World:
    def __init__(self, seconds: float = 60.0) -> None:
        self.reported: list[int] = []
        self.deployments, self.verifier, routes = Deployments(), Verifier(), HotRoutes()
        self.app = RequestMiddleware(
            routes, 1000, seconds, self.local_only, lambda *report: self.reported.append(report[2])
        )
        state = SimpleNamespace(token_verifier=self.verifier, deployments=self.deployments)
        self.direct = DirectAnswers(state, routes, self.app)

    async def local_only(self) -> bool:
        return False

    def begin(self, exchange: Exchange, body: bytes = BODY) -> bool:
        assert self.direct.takes(exchange.scope)
        return self.direct.begin(exchange, body)


def test_an_answer_needs_no_task() -> None:
    async def work() -> None:
        world = World()
        exchange = Exchange(world.app)
        assert world.begin(exchange)
        assert exchange.answers == []
        world.deployments.results[0].set_result(None)
        await asyncio.sleep(0)
        assert [json.loads(each) for each in exchange.answers] == [DONE]
        assert (exchange.task, world.reported) == (None, [200])

    asyncio.run(work())


@pytest.mark.parametrize(
    ("error", "status"), [(NoSafeAction("nothing"), b"409"), (OSError("the disk"), b"500")]
)
def test_an_error_of_the_commit_is_told_by_a_task(error: Exception, status: bytes) -> None:
    async def work() -> None:
        world = World()
        exchange = Exchange(world.app)
        assert world.begin(exchange)
        world.deployments.results[0].set_exception(error)
        await asyncio.sleep(0)
        assert exchange.task is not None
        await exchange.task
        assert exchange.answers[0] == status
        assert (len(world.deployments.results), world.reported) == (1, [int(status)])

    asyncio.run(work())


def test_a_client_that_does_not_read_is_waited_for_by_a_task() -> None:
    async def work() -> None:
        world = World()
        exchange = Exchange(world.app, reads=False)
        assert world.begin(exchange)
        world.deployments.results[0].set_result(None)
        await asyncio.sleep(0)
        assert exchange.task is not None
        await exchange.task
        assert (exchange.answers[0], json.loads(exchange.answers[1])) == (b"200", DONE)
        assert (len(world.deployments.results), world.reported) == (1, [200])

    asyncio.run(work())


def test_what_is_late_is_told_so_once() -> None:
    async def work() -> None:
        world = World(seconds=0.05)
        exchanges = [Exchange(world.app) for _ in range(2)]
        assert all(map(world.begin, exchanges))
        world.deployments.results[0].set_result(None)
        while exchanges[1].task is None:
            await asyncio.sleep(0.01)
        await exchanges[1].task
        if not (late := world.deployments.results[1]).done():
            late.set_result(None)
        await asyncio.sleep(0.01)
        assert json.loads(exchanges[0].answers[0]) == DONE
        assert exchanges[1].answers[0] == b"504"
        assert json.loads(exchanges[1].answers[1])["type"] == "urn:c4b:problem:no-answer-in-time"
        assert world.reported == [200, 504]

    asyncio.run(work())


def revoked(world: World) -> None:
    world.verifier.found = None


def limited(world: World) -> None:
    world.verifier.found = Grant("t", Access.admin, None, rate=5.0)


def of_another(world: World) -> None:
    world.verifier.found = Grant("t", Access.admin, "other")


def old(world: World) -> None:
    world.verifier.stale = True


def closed(world: World) -> None:
    world.deployments.closed = True


@pytest.mark.parametrize("change", [revoked, limited, of_another, old, closed])
def test_what_is_not_certain_at_once_is_left_alone(change: Callable[[World], None]) -> None:
    async def work() -> None:
        world = World()
        change(world)
        assert not world.begin(Exchange(world.app))
        assert world.deployments.results == []

    asyncio.run(work())


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"elsewhere.example"), (b"content-type", b"application/json")],
        [(b"host", b"localhost"), (b"content-type", b"text/plain")],
        [(b"host", b"localhost"), (b"host", b"localhost"), (b"content-type", b"application/json")],
    ],
)
def test_headers_that_others_have_to_judge(headers: list[tuple[bytes, bytes]]) -> None:
    async def work() -> None:
        world = World()
        assert not world.begin(Exchange(world.app, *headers))
        assert world.deployments.results == []

    asyncio.run(work())


@pytest.mark.parametrize(
    "body", [b"{", b"{}", b'{"reward": "much"}', b'{"lost": true}', b'{"reward": 1, "lost": true}']
)
def test_bodies_that_others_have_to_judge(body: bytes) -> None:
    async def work() -> Any:
        world = World()
        assert not world.begin(Exchange(world.app), body)
        assert world.deployments.results == []

    asyncio.run(work())
