"""A log that stays in its file has the same rows, labels and errors as one in memory."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from c4b.errors import InvalidLog
from c4b.logs import Columns, open_log, read_log
from c4b.logs import checks as checks_module
from c4b.logs import log as log_module

COLUMNS = Columns(reward="click", action="page", time="at", id="id", context=("age",))


def frame(rows: int = 25) -> pl.DataFrame:
    draw = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "id": [f"visit-{n}" for n in range(rows)],
            "at": np.arange(rows),
            "page": draw.choice(["home", "new", "old"], rows),
            "age": draw.random(rows),
            "click": draw.integers(0, 2, rows).astype(float),
        }
    )


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "BATCH", 7)
    monkeypatch.setattr(log_module, "BATCH_OF_VECTORS", 3)
    monkeypatch.setattr(checks_module, "IDS_AT_ONCE", 4)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_the_same_rows_in_batches(tmp_path: Path, ending: str) -> None:
    path, rows = tmp_path / f"log.{ending}", frame()
    {"parquet": rows.write_parquet, "csv": rows.write_csv, "jsonl": rows.write_ndjson}[ending](path)
    log, whole = open_log(path, COLUMNS, reward_range=(0.0, 1.0)), read_log(path, COLUMNS)
    batches = list(log.batches(7))
    assert [len(batch) for batch in batches] == [7, 7, 7, 4]
    assert pl.concat([batch.frame for batch in batches]).equals(whole.frame)
    assert log.labels("page") == whole.labels("page") == ["home", "new", "old"]
    past, rest = log.split(10)
    assert (len(past), len(rest)) == (10, 15)
    assert rest.head(3).frame.equals(whole.frame[10:13])
    later = rest.split(4)[1]
    assert pl.concat([batch.frame for batch in later.batches(3)]).equals(whole.frame[14:])


@pytest.mark.parametrize(
    ("column", "row", "value", "said"),
    [
        ("click", 20, 3.0, "declared range"),
        ("age", 15, float("nan"), "finite"),
        ("at", 14, 2, "is earlier than the row before, 13"),  # the first of a batch
        ("at", 16, 2, "is earlier than the row before, 15"),
        ("id", 23, "visit-3", "is the id of row 4 already"),
    ],
)
def test_the_same_errors_in_every_batch(column: str, row: int, value: object, said: str) -> None:
    rows = frame()
    rows[row, column] = value
    found = []
    for reader in (open_log, read_log):
        with pytest.raises(InvalidLog, match=said) as raised:
            reader(rows, COLUMNS, reward_range=(0.0, 1.0))
        found.append((raised.value.argument, raised.value.shown))
    assert found[0] == found[1]
    assert f"column '{column}', row {row + 1}" in found[0][0]


def test_the_first_of_several_doubled_ids_is_named() -> None:
    rows = frame()
    for row in (24, 19, 21):
        rows[row, "id"] = f"visit-{row - 15}"
    with pytest.raises(InvalidLog, match="is the id of row 5 already") as raised:
        open_log(rows, COLUMNS)
    assert raised.value.argument.endswith("row 20")


def test_no_rows() -> None:
    with pytest.raises(InvalidLog, match="at least one row"):
        open_log(frame(0), COLUMNS)


def test_vectors_of_other_lengths_in_later_batches(tmp_path: Path) -> None:
    films = [["a", "b"]] * 8
    columns = Columns(action="shown", candidates="films", vectors="x")
    good = pl.DataFrame({"films": films, "x": [[[1.0, 2.0], [3.0, 4.0]]] * 8, "shown": ["a"] * 8})
    good.write_parquet(tmp_path / "log.parquet")
    assert [len(batch) for batch in open_log(tmp_path / "log.parquet", columns).batches()] == [3, 3, 2]
    long = [[[1.0, 2.0], [3.0, 4.0]]] * 4 + [[[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]]] * 4
    good.with_columns(x=pl.Series(long)).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(InvalidLog, match=r"column 'x', row 5 .*one length, here 2"):
        open_log(tmp_path / "log.parquet", columns)
