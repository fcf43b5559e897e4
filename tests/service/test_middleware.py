"""What the middleware leaves behind."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from c4b.service.middleware import RequestMiddleware
from c4b.service.serving.http_protocol import ANSWER


def test_a_request_does_not_refer_to_itself_once_it_is_answered() -> None:
    """Such cycles filled the garbage collector, which then stopped every request for 20 ms."""
    answered: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["extensions"][ANSWER](b"", b"{}")

    def answer(lines: bytes, body: bytes) -> bool:
        answered.append(body)
        return True

    async def local_only() -> bool:
        return False

    async def nothing(*_: Message) -> Any:
        raise AssertionError

    middleware = RequestMiddleware(app, 1000, 10.0, local_only, lambda *_: None)
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/deployments/shop/decisions",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "extensions": {ANSWER: answer},
    }
    asyncio.run(middleware(scope, nothing, nothing))
    assert answered == [b"{}"]
    assert scope["extensions"] == {}
