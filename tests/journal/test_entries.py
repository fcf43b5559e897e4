"""The canonical JSON of entries: the bytes that hashes cover."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4b.journal import entries

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_canonical_text_is_what_the_json_module_writes(value: Any) -> None:
    assert entries.canonical(value) == json.dumps(value, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}, -float("inf")])
def test_numbers_that_are_not_finite_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        entries.canonical(value)


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}}, b"bytes"])
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        entries.canonical(value)


@pytest.mark.parametrize("maker", [None, lambda *_: None, lambda *_: lambda value, _: ["other"]])
def test_without_the_compiled_encoder_the_text_is_the_same(
    maker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "_MAKE_ENCODER", maker)
    value = {"b": [1.5, None, True], "a": "ü", "c": {}}
    assert entries._new_encoder()(value) == entries.canonical(value)
