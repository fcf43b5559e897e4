"""``c4b deploy`` as a shell script uses it: JSON in and out, one line on stderr and code 2 if wrong."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from c4b.cli import main as cli
from support.shop_world import create, sql, trade


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def command(*arguments: str, stdin: str = "") -> tuple[int, Any, str]:
        monkeypatch.setattr(sys, "argv", ["c4b", "deploy", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        try:
            return code, json.loads(out), err
        except ValueError:
            return code, out, err

    return command


def test_a_slate(run: Any, url: str) -> None:
    terms = ["--dim", "2", "--noise", "0.1", "--norm-bound", "1", "--reserve", "2"]
    assert run("create", url, "slates", *terms)[0] == 0
    question = {"candidates": [[[1, 0.1], [1, 0.2]]], "baseline": [[1, 0], [1, 0]]}
    code, decided, _ = run("decide", url, "slates", json.dumps(question))
    assert code == 0
    code, state, _ = run("observe", url, "slates", json.dumps({decided["id"]: [0.4, 0.5]}))
    assert (code, state["observations"]) == (0, 2)


def test_a_told_mean(run: Any, url: str) -> None:
    terms = ["--dim", "2", "--noise", "0.1", "--norm-bound", "1", "--policy", "clucb"]
    assert run("create", url, "told", *terms, "--baseline-floor", "0.2")[0] == 0
    question = {"candidates": [[1, 0.1]], "baseline": [1, 0]}
    code, _, error = run("decide", url, "told", json.dumps(question))
    assert (code, "baseline_mean" in error) == (2, True)
    code, made, _ = run("decide", url, "told", json.dumps({**question, "baseline_mean": 0.5}))
    assert (code, made["bank"]) == (0, pytest.approx(0.05 * 0.5))
    assert run("create", url, "first", *terms, "--horizon", "9")[0] == 2


def test_a_whole_life(run: Any, url: str, tmp_path: Path) -> None:
    terms = ["--dim", "2", "--noise", "0.1", "--norm-bound", "1", "--reserve", "0.5"]
    assert run("create", url, "shop", *terms)[1]["bank"] == 0.5
    assert run("list", url)[1] == ["shop"]
    assert run("migrate", url)[1] == {"before": 2, "after": 2}
    history = json.dumps({"features": [[1, 0], [1, 0.2]], "rewards": [0.5, 0.6]})
    assert run("learn", url, "shop", history)[1]["observations"] == 2
    question = {"candidates": [[1, 0.1]], "baseline": [1, 0], "request_id": "r", "context": {"u": 1}}
    for _ in range(2):
        code, made, _ = run("decide", url, "shop", "-", stdin=json.dumps(question))
        assert (code, made["receipt"]["seq"]) == (0, 2)
        assert made["id"] == f"shop-2-{made['receipt']['hash'][:12]}"
        assert made["candidates"][0]["estimate"] <= made["candidates"][0]["upper"]
    second = run("decide", url, "shop", json.dumps({"candidates": [], "baseline": [1, 0]}))[1]["id"]
    assert (
        run("observe", url, "shop", json.dumps({made["id"]: 0.5, second: None}))[1]["observations"] == 3
    )
    third = run("decide", url, "shop", json.dumps({"candidates": [], "baseline": [1, 0]}))[1]["id"]
    for features, executed in (([1, 0.05], [1.0, 0.05]), (None, [1.0, 0.0])):
        assert run("executed", url, "shop", json.dumps({third: features}))[0] == 0
        assert run("explain", url, "shop", third)[1]["executed"] == executed
    record = run("explain", url, "shop", made["id"])[1]
    assert (record["reward"], record["context"], record["outcome"]) == (0.5, {"u": 1}, "observed")
    assert run("status", url, "shop")[1]["rounds"] == 3
    kept = str(tmp_path / "kept")
    assert run("witness", url, "shop", kept)[1]["seq"] == run("status", url, "shop")[1]["seq"]
    assert run("audit", url, "shop", "--witness", kept, "--json")[1]["attested"] == 1
    answers = tmp_path / "answers"
    answers.write_text(json.dumps(made))
    assert run("audit", url, "shop", "--receipts", str(answers), "--json")[1]["attested"] == 1
    code, out, _ = run("audit", url, "shop")
    assert code == 0
    assert "shop: clean" in out
    assert run("audit", url, "shop", "--json")[1]["clean"] is True
    table = tmp_path / "shop.parquet"
    assert run("export", url, "shop", str(table))[1]["rows"] == 3
    code, _, said = run("export", url, "shop", str(tmp_path / "shop.csv"))
    assert (code, "must be a Parquet file" in said) == (2, True)
    frame = pl.read_parquet(table)
    assert frame["outcome"].to_list() == ["observed", "forgotten", "pending"]
    assert frame["reward"].to_list() == [0.5, None, None]
    assert frame["context"].to_list() == ['{"u":1}', None, None]
    picture = tmp_path / "shop.png"
    assert run("plot", url, "shop", str(picture))[0] == 0
    assert picture.read_bytes()[1:4] == b"PNG"


def test_a_loss_after_a_later_outcome_needs_an_assertion(run: Any, url: str) -> None:
    run("create", url, "shop", "--dim", "2", "--noise", "0.1", "--norm-bound", "1", "--reserve", "1")
    given = json.dumps({"candidates": [], "baseline": [1, 0]})
    ids = [run("decide", url, "shop", given)[1]["id"] for _ in range(3)]
    both = json.dumps({ids[0]: None, ids[2]: 0.5})  # the reward is recorded, the loss is refused
    for command, request in (("observe", both), ("executed", json.dumps({ids[1]: [1, 0.05]}))):
        code, _, err = run(command, url, "shop", request)
        assert code == 2
        assert "later decision" in err
        assert "--independent" in err
        assert len(err.splitlines()) == 1
        seq = run("status", url, "shop")[1]["seq"]
        for options in (["--independent"], []):
            assert run(command, url, "shop", request, *options)[1]["seq"] == seq + 1
    assert [run("explain", url, "shop", id_)[1]["outcome"] for id_ in ids] == [
        "forgotten",
        "pending",
        "observed",
    ]
    assert run("audit", url, "shop", "--json")[1]["clean"] is True


def test_an_archive_of_nothing_names_no_file(run: Any, url: str, tmp_path: Path) -> None:
    run("create", url, "shop", "--dim", "2", "--norm-bound", "1", "--noise", "0.1")
    path = tmp_path / "old.parquet"
    code, out, _ = run("archive", url, "shop", str(path), "a year old")
    assert (code, out) == (0, {"path": None, "entries": 0})
    assert not path.exists()


def test_errors_are_one_line_and_code_2(run: Any, sqlite_url: str) -> None:
    terms = ["--dim", "2", "--noise", "0.1", "--norm-bound", "1"]
    run("create", sqlite_url, "shop", *terms)
    for arguments in (
        ["create", sqlite_url, "shop", *terms],
        ["create", sqlite_url, "other", *terms, "--alpha", "7"],
        ["status", sqlite_url, "nothing"],
        ["status", "sqlite:///no-such-file.db", "shop"],
        ["decide", sqlite_url, "shop", "{"],
        ["decide", sqlite_url, "shop", "[1]"],
        ["decide", sqlite_url, "shop", '{"candidates": []}'],
        ["decide", sqlite_url, "shop", '{"candidates": [], "baseline": [1], "more": 1}'],
        ["decide", sqlite_url, "shop", '{"candidates": [[1]], "baseline": [1, 0]}'],
        ["observe", sqlite_url, "shop", '{"shop-9": 1.0}'],
        ["explain", sqlite_url, "shop", "shop-9"],
        ["executed", sqlite_url, "shop", '{"shop-9": null}'],
        ["plot", sqlite_url, "shop", "nothing-decided-yet.png"],
        ["plot", sqlite_url, "shop", "picture.xyz"],
        ["create", sqlite_url, "other", *terms, "--timeout-reward", "0"],
        ["status", f"sqlite:///{__file__}", "shop"],
        ["create", sqlite_url, "wide", "--dim", "10000000", *terms[2:]],
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("c4b: ")
        assert err.count("\n") == 1


def test_a_key_that_is_there_twice_is_refused(run: Any, sqlite_url: str) -> None:
    """Its first value would be lost, and an outcome cannot be reported again with another one."""
    terms = ["--dim", "2", "--noise", "0.1", "--norm-bound", "1"]
    assert run("create", sqlite_url, "shop", *terms)[0] == 0
    asked = '"candidates": [[1, 0.1]], "baseline": [1, 0]'
    made = run("decide", sqlite_url, "shop", f"{{{asked}}}")[1]["id"]
    for command, request in (
        ("observe", f'{{"{made}": 1, "{made}": 0}}'),
        ("executed", f'{{"{made}": [1, 0], "{made}": null}}'),
        ("decide", f'{{{asked}, "request_id": "a", "request_id": "b"}}'),
        ("decide", f'{{{asked}, "context": {{"user": 1, "user": 2}}}}'),
    ):
        code, out, error = run(command, sqlite_url, "shop", request)
        assert (code, out, error.count("\n"), "twice" in error) == (2, "", 1, True)
    state = run("status", sqlite_url, "shop")[1]
    assert (state["rounds"], state["observations"]) == (1, 0)


def test_json_that_is_too_deep_is_refused(run: Any, sqlite_url: str) -> None:
    create(sqlite_url).close()
    request = '{"candidates": ' + "[" * 100_000
    code, out, error = run("decide", sqlite_url, "shop", request)
    assert (code, out, error.count("\n"), "deep" in error) == (2, "", 1, True)


def test_a_finding_of_the_audit_is_code_1(run: Any, sqlite_url: str) -> None:
    with create(sqlite_url, snapshot_every=5) as dep:
        trade(dep, 10)
    sql(sqlite_url, "UPDATE c4b_journal SET at = at + 1 WHERE seq = 2")
    code, out, _ = run("audit", sqlite_url, "shop")
    assert code == 1
    assert "NOT CLEAN. Entry 2 " in out
