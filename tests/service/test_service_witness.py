"""A service that writes down the ends of its journals, and notices that an old copy was restored."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from support.service_process import Service, serving
from support.shop_world import sql
from support.token_service import BODY, ROUND

AT = "/v1/deployments/shop"


def test_an_old_copy_is_refused(tmp_path: Path) -> None:
    store, kept = f"sqlite:///{tmp_path}/shop.db", tmp_path / "kept.jsonl"
    options = ("--witness", str(kept), "--witness-seconds", "0.2")
    with serving(store, tmp_path / "log", *options) as service, service.http() as http:
        http.put(AT, json=BODY).raise_for_status()
        http.post(f"{AT}/decisions", json=ROUND).raise_for_status()
        sql(store, f"VACUUM INTO '{tmp_path / 'backup.db'}'")
        made = http.post(f"{AT}/decisions", json=ROUND).json()
        assert witnessed(kept, made["receipt"]["seq"])
        assert http.post(f"{AT}/audit").json()["attested"] >= 1
        later = http.post(f"{AT}/decisions", json=ROUND).json()
        service.stop()
        assert witnessed(kept, later["receipt"]["seq"])  # the last thing it does
    for leftover in tmp_path.glob("shop.db*"):
        leftover.unlink()
    shutil.copy(tmp_path / "backup.db", tmp_path / "shop.db")
    again = Service(store, tmp_path / "log2", *options)
    try:
        with again.http() as http:
            answer = http.post(f"{AT}/decisions", json=ROUND)
            assert answer.status_code == 500
            assert "does not continue" in answer.text
    finally:
        again.stop()


def witnessed(path: Path, seq: int) -> bool:
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline:
        lines = path.read_text().splitlines() if path.exists() else []
        if any(json.loads(line)["seq"] == seq for line in lines):
            return True
        time.sleep(0.05)
    return False
