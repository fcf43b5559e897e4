"""What callers hold in their hands is taken: frames, sparse matrices, booleans, decisions."""

from __future__ import annotations

import itertools
import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import c4b
from c4b import Client, Deployment, LinearModel, Policy
from c4b.cli import main as cli
from c4b.cli.console.answers import answer
from c4b.errors import InvalidInput
from c4b.policies.rounds.decision import DecisionFields, Receipt
from c4b.study import Results, load
from c4b.study.engine.episode_metrics import Metric

MODEL = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
POOL, BASELINE = [[1.0, 0.1], [1.0, -0.3]], [1.0, 0.0]
_numbers = itertools.count()
KINDS: dict[str, Any] = {
    "pandas": lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
    "polars": lambda rows: pl.DataFrame(rows, schema=["a", "b"], orient="row"),
    "sparse matrix": sparse.csr_matrix,  # as scikit-learn's encoders return it
    "sparse array": sparse.coo_array,
    "integers": lambda rows: np.array(rows, dtype=np.float32),
}


def store() -> str:
    return f"memory://manners-{next(_numbers)}"


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_kind(kind: str) -> None:
    table = KINDS[kind]
    policy, plain = (Policy("refresh", MODEL, 0.1, 1.0) for _ in range(2))
    rewards = [0.5, 0.6]
    policy.learn(table(POOL), pd.Series(rewards))
    exact = np.asarray(POOL, dtype=np.float32 if kind == "integers" else np.float64)
    plain.learn(exact, rewards)
    expected = plain.decide(exact, BASELINE)
    found = policy.decide(table(POOL), table([BASELINE]) if kind != "integers" else BASELINE)
    assert found.numbers == expected.numbers
    with Deployment.create(store(), "shop", MODEL, "refresh", 0.1, 1.0) as dep:
        dep.learn(table(POOL), pl.Series(rewards))
        made = dep.decide(table(POOL), BASELINE, labels=pd.Series(["red", "blue"]))  # type: ignore[arg-type]
        assert made.numbers == expected.numbers
        dep.executed(made, table([BASELINE]) if kind != "integers" else BASELINE)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_names_of_features_in_another_order_are_refused(kind: str) -> None:
    policy, pool = Policy("refresh", MODEL, 0.1, 1.0), KINDS[kind](POOL)
    for baseline in (pool[["b", "a"]][:1], pd.Series(BASELINE, index=["b", "a"])):
        with pytest.raises(InvalidInput, match="same order: a, b"):
            policy.decide(pool, baseline)
        with pytest.raises(InvalidInput, match=r"rounds\[0\]\.baseline"):
            policy.decide_many([(pool, baseline)])
    assert policy.decide(pool, pd.Series(BASELINE, index=["a", "b"])).action is not None
    assert policy.decide(pool, pd.Series(BASELINE)).action is not None  # without names


def test_rows_in_another_order_than_their_rewards_are_refused() -> None:
    policy, rows = Policy("refresh", MODEL, 0.1, 1.0), pd.DataFrame(POOL)
    with pytest.raises(InvalidInput, match="in another order"):
        policy.learn(rows, pd.Series([0.5, 0.6], index=[1, 0]))
    with (
        Deployment.create(store(), "shop", MODEL) as dep,
        pytest.raises(InvalidInput, match="in another order"),
    ):
        dep.learn(rows, pd.Series([0.5, 0.6], index=[1, 0]))
    policy.learn(rows, pd.Series([0.5, 0.6]))
    policy.learn(rows, pd.Series([0.5, 0.6], index=[7, 8]))  # other rows, or another count of them


def test_a_click_and_the_decision_itself() -> None:
    policy = Policy("refresh", MODEL, 0.1, 1.0)
    one, two, three = (policy.decide(POOL, BASELINE) for _ in range(3))
    policy.observe(one, True)
    policy.observe_many([(two, np.False_)])
    policy.forget(three)
    assert policy.pending == ()
    with Deployment.create(store(), "shop", MODEL, "refresh", 0.1, 1.0) as dep:
        made = dep.decide(POOL, BASELINE)
        dep.observe(made, True)
        assert dep.record(made.id).reward == 1.0
        dep.observe(made.id, 1)  # the same
        assert dep.explain(made).decision == made


def test_every_field_of_a_decision_is_explained() -> None:
    source = Path(c4b.policies.rounds.decision.__file__).read_text()
    for kind in (DecisionFields, Receipt):
        text = source.split(f"class {kind.__name__}(")[1].split("    def ")[0].split("@property")[0]
        for field in kind._fields:
            rest = text.split(f"    {field}: ")[1]
            assert rest.split("\n")[1].strip().startswith('"""'), field


def test_notebooks_show_tables(tmp_path: Path) -> None:
    with Deployment.create(store(), "shop", MODEL, "refresh", 0.1, 1.0) as dep:
        made = dep.decide(POOL, BASELINE, labels=["<b>red", "<b>red too"])
        for html in (made._repr_html_(), dep.explain(made)._repr_html_()):
            assert html.count("<table>") == 1
            assert "&lt;b&gt;red" in html
            assert "<b>red" not in html
        assert "the baseline" in dep.decide([], BASELINE)._repr_html_()
    study = load("paper").with_(episodes=2)
    assert "<th>episodes</th><td>2</td>" in study._repr_html_()
    ratios = np.full((2, len(study.settings), len(study.methods)), 1.25)
    measured = Results(tmp_path, study, {}, pl.DataFrame(), {Metric.REWARD_RATIO: ratios})
    assert "<td>1.2500 [1.2500, 1.2500]</td>" in measured._repr_html_()


def test_an_encoder_of_scikit_learn() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing", reason="scikit-learn is not installed")
    encoded = preprocessing.OneHotEncoder().fit_transform([["red"], ["blue"]])  # sparse
    with Deployment.create(store(), "shop", MODEL, "refresh", 0.1, 1.0) as dep:
        assert len(dep.explain(dep.decide(encoded, encoded[:1]))) == 2


def test_a_client_says_where_it_looks() -> None:
    with Client("http://user:secret@127.0.0.1:8000", token="also-secret") as client:
        assert repr(client) == "Client('http://127.0.0.1:8000')"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def command(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["c4b", *map(str, words)])
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0), *capsys.readouterr()
        return 0, *capsys.readouterr()

    return command


@pytest.fixture
def url(tmp_path: Path, run: Any) -> str:
    address = f"sqlite:///{tmp_path}/a.db"
    terms = ("--dim", 2, "--noise", 0.1, "--norm-bound", 1, "--reserve", 1)
    assert run("deploy", "create", address, "shop", *terms)[0] == 0
    return address


def test_history_from_files(run: Any, url: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"y": [0.5, 0.6, 0.7], "a": [1.0, 1.0, 1.0], "b": [0.0, 0.1, 0.2]})
    frame.write_parquet(tmp_path / "past.parquet")
    frame.rename({"y": "reward"}).write_csv(tmp_path / "past.csv")
    nested = pl.DataFrame({"x": [[1.0, 0.0], [1.0, 0.4]], "reward": [0.5, 0.6]})
    nested.write_parquet(tmp_path / "nested.parquet")
    dates = nested.with_columns(reward=pl.col("reward").cast(pl.Int64).cast(pl.Duration("us")))
    dates.write_parquet(tmp_path / "dates.parquet")
    (tmp_path / "text.csv").write_text("a,b,reward\n1,0,none\n")
    learn = ("deploy", "learn", url, "shop")
    code, out, _ = run(*learn, tmp_path / "past.parquet", "--reward", "y", "--features", "a,b")
    assert (code, json.loads(out)["observations"]) == (0, 3)
    assert json.loads(run(*learn, tmp_path / "past.csv")[1])["observations"] == 6
    assert json.loads(run(*learn, tmp_path / "nested.parquet")[1])["observations"] == 8
    for words, said in (
        ((tmp_path / "none.csv",), "is no file"),
        ((tmp_path / "past.parquet",), "--reward = 'reward': is no column of past.parquet"),
        ((tmp_path / "past.csv", "--features", "a,c"), "'c' is no column"),
        ((tmp_path / "dates.parquet",), "reward must be numbers"),
        ((tmp_path / "text.csv",), "reward must be numbers"),
        (
            (tmp_path / "text.csv", "--reward", "b", "--features", "a,reward"),
            "must be columns of numbers",
        ),
        ((tmp_path / "past.csv", "--features", "a"), "there are 1 features in each row"),
    ):
        code, out, err = run(*learn, *words)
        assert (code, out) == (2, "")
        assert said in err


def test_errors_in_shell_words(run: Any, url: str) -> None:
    terms = ("--dim", 2, "--noise", 0.1, "--norm-bound", 1)
    assert "--alpha = 1.5" in run("deploy", "create", url, "other", *terms, "--alpha", 1.5)[2]
    assert (
        "--norm-bound = -1.0"
        in run("deploy", "create", url, "other", "--dim", 2, "--noise", 1, "--norm-bound", -1)[2]
    )
    assert "NAME = 'no name'" in run("deploy", "status", url, "no name")[2]
    _, out, _ = run("deploy", "decide", url, "shop", json.dumps({"candidates": [], "baseline": BASELINE}))
    first = json.loads(out)["id"]
    _, out, _ = run("deploy", "decide", url, "shop", json.dumps({"candidates": [], "baseline": BASELINE}))
    run("deploy", "observe", url, "shop", json.dumps({json.loads(out)["id"]: 0.5}))
    code, _, err = run("deploy", "observe", url, "shop", json.dumps({first: None}))
    assert code == 2
    assert "with --independent," in err
    assert "independent=True" not in err


def test_help_lists_the_shipped_studies(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    assert "paper" in run("study", "run", "--help")[1].split("shipped study: ")[1]


def test_questions_of_the_command_line(run: Any, url: str) -> None:
    question = {"candidates": POOL, "baseline": BASELINE, "labels": ["red", "blue"], "request_id": "r"}
    made = json.loads(run("deploy", "decide", url, "shop", json.dumps(question))[1])
    assert json.loads(run("deploy", "earnings", url, "shop", "--last", 5)[1])["decisions"] == 1
    labels = [each["label"] for each in json.loads(run("deploy", "items", url, "shop")[1])]
    assert sorted(labels) == ["blue", "red"]
    found = json.loads(
        run("deploy", "find", url, "shop", "--request-id", "r", "--since", "2001-01-01")[1]
    )
    assert [each["id"] for each in found] == [made["id"]]
    assert "--since = 'soon'" in run("deploy", "find", url, "shop", "--since", "soon")[2]


def test_tables_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = {"bank": 0.123456789, "alarm_since": None, "name": "shop"}
    answer(state)
    assert json.loads(capsys.readouterr().out) == state
    main, side = pty.openpty()
    with os.fdopen(side, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        answer(state)
        terminal.flush()
        shown = os.read(main, 4096).decode()
        answer(state, as_json=True)
        terminal.flush()
        assert json.loads(os.read(main, 4096)) == state
    os.close(main)
    assert "alarm since" in shown
    assert "0.123457" in shown
    assert "{" not in shown
