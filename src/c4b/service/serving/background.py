"""The service in a thread of this process: for notebooks, examples and tests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from c4b.errors import AddressUnavailable
from c4b.service.app import create
from c4b.service.settings import Settings

START_SECONDS = 60.0
"""Time limit for the start of the service. The first start on a machine compiles."""


@contextmanager
def serve_in_background(store: str) -> Iterator[str]:
    """Serve ``store`` on a free port of this machine while the block runs; yields the service's URL.

    The service runs in this process, so it knows the policies and sets that this program registered. For
    real traffic use ``c4b serve``.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(create(Settings(store)), log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise AddressUnavailable("the service did not start; its log says why")
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()
