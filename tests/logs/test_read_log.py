"""Logs are read from every kind of table, and each wrong row is named with its column."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from c4b.errors import InvalidInput, InvalidLog
from c4b.logs import Columns, Log, open_log, read_log

GOOD: dict[str, list[Any]] = {
    "click": [0.0, 1.0, 0.0, 1.0],
    "item": ["a", "b", "a", "c"],
    "p": [0.5, 0.25, 1.0, 0.5],
    "q": [0.0, 1.0, 0.5, 0.5],
    "when": [datetime.date(2026, 1, d) for d in (1, 1, 2, 3)],
    "key": [1, 2, 3, 4],
    "pool": [["a", "b"], ["b"], ["a", "c"], ["c"]],
    "x": [[[1.0], [2.0]], [[2.0]], [[1.0], [3.0]], [[3.0]]],
    "usual": ["b", "b", "c", "c"],
    "age": [20.0, 30.0, 40.0, 50.0],
    "city": ["x", "y", "x", "y"],
}
COLUMNS = Columns(
    reward="click", action="item", propensity="p", policy_probability="q", time="when", id="key",
    candidates="pool", vectors="x", baseline="usual", context=("age", "city"),
)  # fmt: skip


def read(**changed: list[Any]) -> Log:
    return read_log(pl.DataFrame({**GOOD, **changed}), COLUMNS, reward_range=(0.0, 1.0))


def test_a_good_log() -> None:
    log = read()
    assert len(log) == 4
    assert log.weights().tolist() == [0.0, 4.0, 0.5, 1.0]
    past, rest = log.split(1)
    assert (len(past), len(rest)) == (1, 3)


@pytest.mark.parametrize(
    ("column", "row", "value", "remedy"),
    [
        ("click", 2, 1.5, r"declared range \[0, 1\]"),
        ("click", 3, float("nan"), "finite"),
        ("click", 1, None, "missing"),
        ("p", 4, 0.0, "probability"),
        ("p", 1, 1.01, "probability"),
        ("q", 2, -0.1, "probability"),
        ("item", 3, None, "missing"),
        ("age", 2, float("inf"), "finite"),
        ("city", 2, None, "missing"),
        ("when", 4, datetime.date(2025, 12, 31), "earlier than the row before"),
        ("key", 4, 2, "is the id of row 2 already"),
        ("pool", 3, ["c"], "must hold the executed action"),
        ("pool", 1, [], "at least one"),
        ("pool", 3, ["c", "a", "c"], "twice"),
        ("usual", 2, None, "missing"),
        ("x", 2, [[1.0], [2.0]], "one vector for each candidate"),
        ("x", 3, [[1.0], [1.0, 2.0]], "one length, here 1"),
        ("x", 3, [[1.0], [float("nan")]], "finite"),
        ("x", 1, [[1.0], [None]], "finite"),
    ],
)
def test_a_wrong_row_is_named(column: str, row: int, value: object, remedy: str) -> None:
    changed = [*GOOD[column]]
    changed[row - 1] = value
    with pytest.raises(InvalidLog, match=remedy) as error:
        read(**{column: changed})
    assert error.value.argument == f"log, column {column!r}, row {row}"


def test_vectors_need_candidates_and_numbers() -> None:
    with pytest.raises(InvalidInput, match="needs a column of candidates"):
        Columns(reward="click", vectors="x")
    with pytest.raises(
        InvalidLog, match=r"column 'pool', row 2 .*the incumbent's action of column 'usual'"
    ):
        read(usual=["b", "a", "c", "c"])
    with pytest.raises(InvalidLog, match="must be a list of vectors"):
        read(x=[["a"], ["b"], ["c"], ["d"]])
    fixed = pl.DataFrame({"x": np.ones((2, 3, 4)), "pool": np.arange(6).reshape(2, 3), "item": [0, 4]})
    assert len(read_log(fixed, Columns(action="item", candidates="pool", vectors="x"))) == 2


def test_text_where_a_number_should_be() -> None:
    with pytest.raises(InvalidLog, match="row 2 = 'much'"):
        read(click=["0", "much", "1", "0"])
    with pytest.raises(InvalidLog, match="must be numbers, not text"):
        read(click=["0", "1", "1", "0"])
    with pytest.raises(InvalidLog, match="must be a list"):
        read(pool=["a", "b", "a", "c"])
    with pytest.raises(InvalidLog, match="must be a number, a date or a time"):
        read(when=["yesterday"] * 4)


def test_a_missing_column_is_named_with_the_nearest() -> None:
    with pytest.raises(InvalidLog, match="'clicks': does not exist; did you mean 'click'"):
        read_log(pl.DataFrame(GOOD), Columns(reward="clicks"))


def test_no_rows() -> None:
    with pytest.raises(InvalidLog, match="at least one row"):
        read_log(pl.DataFrame(GOOD).clear(), COLUMNS)


def test_every_kind_of_file(tmp_path: Path) -> None:
    frame = pl.DataFrame(GOOD)
    frame.write_parquet(tmp_path / "log.parquet")
    frame.write_ipc(tmp_path / "log.arrow")
    frame.drop("pool", "when").write_ndjson(tmp_path / "log.jsonl")
    frame.drop("pool", "x").write_csv(tmp_path / "log.csv")
    columns = Columns(reward="click", action="item", propensity="p", policy_probability="q", time="when")
    for name in ("log.parquet", "log.arrow", "log.csv"):
        log = read_log(tmp_path / name, columns)
        assert log.weights().tolist() == [0.0, 4.0, 0.5, 1.0]
        assert log.frame.columns == ["click", "item", "p", "q", "when"]  # nothing else is read
    lines = read_log(tmp_path / "log.jsonl", Columns(reward="click", id="key"))
    assert lines.numbers("reward").tolist() == GOOD["click"]


def test_a_cell_far_down_that_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item,click\n" + "a,1\n" * 10_500 + "b,much\n")
    for read_it in (read_log, open_log):
        with pytest.raises(InvalidLog, match=r"column 'click', row 10501 = 'much': is no number"):
            read_it(path, Columns(reward="click", action="item"))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ".arrow"])
def test_a_name_is_no_pattern(tmp_path: Path, ending: str) -> None:
    for name, reward in (("log[1]", 1.0), ("log1", 0.0)):
        frame, path = pl.DataFrame({"reward": [reward]}), tmp_path / f"{name}{ending}"
        write = {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".jsonl": frame.write_ndjson}
        write.get(ending, frame.write_ipc)(path)
    assert read_log(tmp_path / f"log[1]{ending}", Columns(reward="reward")).numbers("reward") == [1.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reward,label,p\n1,a,0.5\n1,red, small,0.5\n", "are more in some row than in the header"),
        ("reward,label,reward\n1,a,0\n", "occurs twice"),
        ("reward,label\n1,1.1\n0,1.10\n", "'1.10': would be the same as '1.1'"),
        ("reward,label\n1,1\n0,01\n", "'1': would be the same as '01'"),
        ("reward,label\n1,true\n0,True\n", "'true': would be the same as 'True'"),
    ],
)
def test_cells_that_a_csv_file_hides(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "log.csv").write_text(text)
    for read in (read_log, open_log):
        with pytest.raises(InvalidLog, match=said):
            read(tmp_path / "log.csv", Columns(reward="reward", action="label"))


def test_a_csv_file_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes("reward,label\n1,ä\n".encode("latin-1"))
    with pytest.raises(InvalidLog, match="utf-8"):
        read_log(tmp_path / "log.csv", Columns(reward="reward", action="label"))


def test_lists_where_numbers_should_be() -> None:
    with pytest.raises(InvalidLog, match="must be numbers"):
        read_log(pl.DataFrame({"reward": [[1.0]]}), Columns(reward="reward"))


def test_frames_of_other_libraries() -> None:
    class ArrowTable:  # what pyarrow offers
        def __init__(self, frame: pl.DataFrame) -> None:
            self.frame = frame

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self.frame.__arrow_c_stream__(requested_schema)

    class PandasFrame:  # what pandas offers without pyarrow
        columns = ("click", "item")

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ImportError("pyarrow")

        def __getitem__(self, name: str) -> pl.Series:
            return pl.Series(np.asarray(GOOD[name]))

    columns = Columns(reward="click", action="item")
    for source in (ArrowTable(pl.DataFrame(GOOD)), PandasFrame(), pl.LazyFrame(GOOD)):
        assert read_log(source, columns).frame["item"].to_list() == GOOD["item"]


def test_what_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    for source in (3, "log.xlsx", tmp_path / "none.csv"):
        with pytest.raises(InvalidInput, match="log = "):
            read_log(source, COLUMNS)
    with pytest.raises(InvalidLog, match="cannot be read"):
        read_log(tmp_path / "cut.parquet", COLUMNS)


def test_a_declaration_is_written_as_ever() -> None:
    """Folders of interrupted replays hold it; later fields are shown where they are used."""
    assert repr(Columns(reward="y", action="a")) == (
        "Columns(reward='y', action='a', propensity=None, policy_probability=None, weight=None, "
        "time=None, id=None, candidates=None, context=(), rewards=())"
    )
    assert "baseline='b'" in repr(Columns(reward="y", action="a", baseline="b"))


def test_a_column_has_one_meaning() -> None:
    with pytest.raises(InvalidInput, match="is declared as reward already"):
        Columns(reward="x", weight="x")
    with pytest.raises(InvalidInput, match="sequence of column names"):
        Columns(context="age")  # type: ignore[arg-type]


def test_a_real_pandas_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: GOOD[name] for name in ("click", "item", "p", "q", "age")})
    log = read_log(frame, Columns(reward="click", action="item", propensity="p", policy_probability="q"))
    assert log.weights().tolist() == [0.0, 4.0, 0.5, 1.0]
    assert log.frame["item"].to_list() == GOOD["item"]
    frame.loc[2, "click"] = float("nan")
    with pytest.raises(InvalidLog, match="column 'click', row 3"):
        read_log(frame, Columns(reward="click"))


def test_objects_in_a_pandas_frame() -> None:
    pandas = pytest.importorskip("pandas")
    columns = Columns(reward="click", action="item")
    frame = pandas.DataFrame({"click": [0, 1], "item": ["a", "b"], "else": [1, "x"]}, dtype=object)
    assert read_log(frame, columns).numbers("reward").tolist() == [0.0, 1.0]
    with pytest.raises(InvalidLog, match="labels of one kind"):
        read_log(frame.assign(item=[1, "1"]), columns)
    with pytest.raises(InvalidLog, match="must be numbers"):
        read_log(frame.assign(click=[1, "1"]), columns)
    with pytest.raises(InvalidLog, match="row 2 = None: is missing"):
        read_log(frame.assign(item=pandas.array(["a", None], dtype="string")), columns)
    with pytest.raises(InvalidInput, match="non-unique"):
        read_log(frame.set_axis(["click", "item", "item"], axis=1), columns)
