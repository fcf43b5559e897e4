"""The same features in a log and online, before and after a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from c4b._validate import Array
from c4b.errors import CorruptState, InvalidInput, InvalidLog, NewerState
from c4b.features import (
    Embedding,
    FeatureBuilder,
    Hashed,
    Interaction,
    Intercept,
    Number,
    OneHot,
    Transformer,
    Vector,
)
from c4b.features.part import Part

PAST = pl.DataFrame(
    {
        "age": [20.0, 30.0, 40.0, 30.0],
        "price": [1, 3, 2, 5],
        "film": ["b", "a", "a", "c"],
        "user": [1, 2, 1, 3],
    }
)


class Scaler:
    """What scikit-learn's transformers look like."""

    def fit(self, X: Any) -> "Scaler":
        self.mean = X.mean(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return X - self.mean


def builder() -> FeatureBuilder:
    return FeatureBuilder(
        [
            Intercept(),
            Number("age"),
            Number("price", scale="range", clip=None),
            OneHot("film"),
            Hashed("user", 3),
            Embedding("film", {"a": (1.0, 2.0), "b": (0.1, 0.3), "c": (0.0, 0.0)}, unknown=(9.0, 9.0)),
            Interaction(OneHot("film", at_most=1), Number("price", scale="none")),
        ]
    ).fit(PAST)


def test_hand_computed() -> None:
    made = builder()
    assert made.names == [
        "1", "age", "price", "film=a", "film=b", "film=c", "user#0", "user#1", "user#2",
        "film[0]", "film[1]", "film=a*price",
    ]  # fmt: skip
    features = made.transform(PAST)
    spread = np.sqrt(50.0)
    assert features[1, :6].tolist() == [1.0, 0.0, 0.5, 1.0, 0.0, 0.0]
    assert features[0, 1] == pytest.approx(-10.0 / spread)
    assert np.abs(features[:, 6:9]).sum(axis=1).tolist() == [1.0] * 4
    assert np.array_equal(features[0, 6:9], features[2, 6:9])  # the same user
    assert features[2, 9:].tolist() == [1.0, 2.0, 2.0]
    assert features[3, 9:].tolist() == [0.0, 0.0, 0.0]


def test_online_features_are_those_of_the_log(tmp_path: Path) -> None:
    made = builder()
    made.save(tmp_path / "features.json")
    loaded = FeatureBuilder.load(tmp_path / "features.json")
    features = made.transform(PAST)
    for row, expected in zip(PAST.to_dicts(), features, strict=True):
        context = {"age": row["age"], "user": row["user"]}
        item = {"film": row["film"], "price": row["price"]}
        for each in (made, loaded):
            assert np.array_equal(each.candidates(context, [item, item])[1], expected)
    assert loaded.candidates({"age": 1.0, "user": 1}, []).shape == (0, 12)


def test_later_rows_do_not_move_the_scale() -> None:
    made = builder()
    later = PAST.with_columns(age=pl.lit(1e6), film=pl.lit("new"))
    features = made.transform(later)
    assert features[:, 1].tolist() == [5.0] * 4  # clipped
    assert not features[:, 3:6].any()
    assert features[:, 9].tolist() == [9.0] * 4


def test_hashing_spreads() -> None:
    rows = pl.DataFrame({"user": list(range(3000))})
    features = Hashed("user", 10).transform(rows)
    share = np.abs(features).sum(axis=0) / 3000
    assert np.all(np.abs(share - 0.1) < 0.03)
    assert abs(features.sum()) < 200


def test_a_transformer_is_given_again(tmp_path: Path) -> None:
    scaler = Scaler()
    made = FeatureBuilder([Intercept(), Transformer("scaled", ["age", "price"], scaler)]).fit(PAST)
    assert not hasattr(scaler, "mean")  # the user's own is left alone
    fitted = made.parts[1].transformer  # type: ignore[attr-defined]
    made.save(tmp_path / "features.json")
    loaded = FeatureBuilder.load(tmp_path / "features.json", transformers={"scaled": fitted})
    assert np.array_equal(loaded.transform(PAST), made.transform(PAST))
    assert made.transform(PAST)[0].tolist() == [1.0, -10.0, -1.75]
    with pytest.raises(InvalidInput, match="lacks 'scaled'"):
        FeatureBuilder.load(tmp_path / "features.json")


def test_scikit_learn() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing", reason="scikit-learn is not installed")
    encoder = preprocessing.OneHotEncoder(handle_unknown="ignore")
    made = FeatureBuilder([Transformer("film", ["film"], encoder)]).fit(PAST)
    assert made.transform(PAST)[0].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("part", "rows", "message"),
    [
        (Number("age"), {"age": [1.0, None]}, "column 'age', row 2 = None"),
        (Number("age"), {"age": [1.0, float("nan")]}, "column 'age', row 2 = nan"),
        (Number("age"), {"age": ["x", "y"]}, "use OneHot or Hashed"),
        (Number("age"), {"years": [1.0]}, "'age': does not exist"),
        (OneHot("age"), {"age": [1.5]}, "must be labels"),
        (Embedding("film", {"a": (1.0,)}), {"film": ["a", "b"]}, "row 2 = 'b': has no vector"),
    ],
)
def test_wrong_rows_are_named(part: Any, rows: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InvalidLog, match=message):
        FeatureBuilder([part]).fit(pl.DataFrame(rows, strict=False)).transform(
            pl.DataFrame(rows, strict=False)
        )


def test_wrong_arguments() -> None:
    for call, message in [
        (lambda: FeatureBuilder([]), "parts"),
        (lambda: FeatureBuilder([Number("age")]).transform(PAST), "must be fixed first"),
        (lambda: FeatureBuilder([Number("age")]).fit(PAST.clear()), "past"),
        (lambda: Number("age", scale="log"), "scale = 'log'"),
        (lambda: Hashed("user", 0), "size = 0"),
        (lambda: Embedding("film", {"a": (1.0,), "b": (1.0, 2.0)}), r"vectors\['b'\]"),
        (lambda: builder().candidates({"age": 1.0}, [{"age": 2.0}]), r"items\[0\]"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            call()  # type: ignore[no-untyped-call]


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "features.json"
    builder().save(path)
    good = json.loads(path.read_text())
    assert not list(tmp_path.glob("*.unfinished"))
    broken: list[tuple[type[Exception], Any]] = [
        (NewerState, {**good, "format": 2}),
        (CorruptState, {**good, "names": good["names"][1:]}),
        (CorruptState, {**good, "parts": [{"kind": "number", "colour": "age"}]}),
        (InvalidInput, {**good, "parts": [{"kind": "wavelet"}]}),
        (CorruptState, [1, 2]),
    ]
    for kind, content in broken:
        path.write_text(json.dumps(content))
        with pytest.raises(kind):
            FeatureBuilder.load(path)
    path.write_text("{")
    with pytest.raises(CorruptState):
        FeatureBuilder.load(path)


def test_vectors_that_rows_hold(tmp_path: Path) -> None:
    rows = pl.DataFrame({"x": [[1.0, 2.0], [3.0, 4.0]], "n": [1, 2]})
    builder = FeatureBuilder([Intercept(), Vector("x")]).fit(rows)
    assert builder.names == ["1", "x[0]", "x[1]"]
    assert builder.transform(rows).tolist() == [[1.0, 1.0, 2.0], [1.0, 3.0, 4.0]]
    builder.save(tmp_path / "features.json")
    online = FeatureBuilder.load(tmp_path / "features.json")
    assert online.candidates({}, [{"x": [5.0, 6.0]}]).tolist() == [[1.0, 5.0, 6.0]]
    fixed = rows.with_columns(pl.col("x").list.to_array(2))
    assert np.array_equal(builder.transform(fixed), builder.transform(rows))
    with pytest.raises(InvalidLog, match=r"column 'x', row 1 = \[1.0\]: must hold 2 numbers"):
        builder.transform(pl.DataFrame({"x": [[1.0]]}))
    with pytest.raises(InvalidLog, match="finite"):
        builder.transform(pl.DataFrame({"x": [[1.0, float("nan")]]}))
    with pytest.raises(InvalidLog, match="must hold vectors"):
        FeatureBuilder([Vector("n")]).fit(rows)


def test_a_builder_says_what_it_holds() -> None:
    builder = FeatureBuilder([Intercept(), OneHot("film")])
    assert repr(builder) == "<FeatureBuilder: Intercept, OneHot; not fitted>"
    assert repr(builder.fit(PAST)) == "<FeatureBuilder: Intercept, OneHot; 4 features>"


class LogNumber(Number):
    """Derived from a part, with a kind of its own."""

    kind = "log-number"

    def transform(self, rows: pl.DataFrame) -> Array:
        return np.log1p(super().transform(rows))


class SquareNumber(Number):
    """Derived from a part, whose kind it shares."""

    def transform(self, rows: pl.DataFrame) -> Array:
        return np.asarray(super().transform(rows) ** 2)


def test_a_part_derived_from_another_is_read_as_itself(tmp_path: Path) -> None:
    rows = pl.DataFrame({"age": [1.0, 2.0]})
    saved = FeatureBuilder([LogNumber("age", scale="none")]).fit(rows)
    saved.save(tmp_path / "features.json")
    read = FeatureBuilder.load(tmp_path / "features.json")
    assert read.transform(rows).tolist() == saved.transform(rows).tolist() == np.log([[2], [3]]).tolist()


@pytest.mark.parametrize("inside", [False, True])
def test_a_part_that_would_be_read_as_another_is_not_saved(tmp_path: Path, inside: bool) -> None:
    part: Part = SquareNumber("age", scale="none")
    if inside:
        part = Interaction(part, Intercept())
    builder = FeatureBuilder([part]).fit(pl.DataFrame({"age": [1.0, 2.0]}))
    with pytest.raises(InvalidInput, match="SquareNumber needs a kind of its own"):
        builder.save(tmp_path / "features.json")
    assert not (tmp_path / "features.json").exists()
