"""The demo: three pages with traffic, one of them with an alarm."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import httpx

from support.service_process import C4B, free_port


def test_demo(tmp_path: Path) -> None:
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        command = [*C4B, "demo", "--port", str(port), "--pace", "0.02"]
        folder = {**os.environ, "TMPDIR": str(tmp_path)}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=folder)
    try:
        states: dict[str, dict[str, object]] = {}
        deadline = time.monotonic() + 180.0
        while time.monotonic() < deadline:
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}/v1/deployments", timeout=10.0).json()
            except httpx.TransportError:
                time.sleep(0.2)
                continue
            states = {state["name"]: state for state in answer["deployments"]}
            if len(states) == 3 and states["search"]["health"] == "alarm":
                break
            time.sleep(0.5)
        assert sorted(states) == ["checkout", "homepage", "search"]
        assert states["search"]["health"] == "alarm"  # it drifts, and the data refute the model
        assert states["homepage"]["health"] == "ok"
        assert states["homepage"]["bank"] > 0.0  # type: ignore[operator]
        said = (tmp_path / "log").read_text()
        assert f"http://127.0.0.1:{port}/" in said
        assert "stopped" not in said
        assert "to serve others, use c4b serve" in said
        assert "token create" not in said  # a temporary store needs no token
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30.0)
    assert not list(tmp_path.glob("c4b-demo-*"))  # thrown away, as promised
