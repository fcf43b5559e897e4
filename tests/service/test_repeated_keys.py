"""A key that is there twice is found, wherever it is, and nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import from_json

from c4b.service.routing.repeated_keys import is_complete, repeated_key
from support.service_process import Service

TEXTS = st.sampled_from(["a", "b", ":", "a:b", '":', '"', "\\u003a", "\\", "ü", ""])
LEAVES = TEXTS | st.floats(-2, 2) | st.integers(-2, 2) | st.none() | st.booleans()


def pairs(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object as its pairs, in a tuple; a list is a list."""
    return st.lists(values, max_size=3) | st.lists(st.tuples(TEXTS, values), max_size=4).map(tuple)


def written(value: Any, blank: str, escape: bool) -> str:
    """As JSON. escape: every colon of a string is escaped."""
    if isinstance(value, tuple):
        inner = (f"{written(k, '', escape)}{blank}:{blank}{written(v, blank, escape)}" for k, v in value)
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return f"[{','.join(written(each, blank, escape) for each in value)}]"
    text = json.dumps(value)
    return text.replace(":", "\\u003a") if escape else text


def has_one(value: Any) -> bool:
    if isinstance(value, tuple):
        keys = [key for key, _ in value]
        return len({*keys}) < len(keys) or any(has_one(each) for _, each in value)
    return isinstance(value, list) and any(map(has_one, value))


@given(st.recursive(LEAVES, pairs, max_leaves=12), st.sampled_from(["", " ", "\n\t"]), st.booleans())
@example((("a", 1), ("a", 2), ("b", ":")), "", True)  # as many colons as keys and colons in strings
@example([1.0, (("a", 1), ("a", 2))], "", False)
def test_any_text(value: Any, blank: str, escape: bool) -> None:
    body = written(value, blank, escape).encode()
    found = repeated_key(body, from_json(body))
    assert (found is not None) is has_one(value)


@pytest.mark.parametrize(
    "context", [None, {"user": "u-1", "at": "08:00:00"}, {"user": [{"name": "Zoë"}]}, "a:b"]
)
def test_usual_bodies_are_not_parsed_again(context: object) -> None:
    rows = {"candidates": [[1.0, 0.5]] * 3, "baseline": [1.0, 0.0], "labels": ["a", "b:c", "d"]}
    for value in ({**rows, "context": context}, {"rounds": [{**rows, "context": context}] * 3}):
        body = json.dumps(value).encode()
        assert is_complete(body, from_json(body))


def test_every_route_refuses_them(service: Service) -> None:
    def refusal(method: str, path: str, body: str) -> str:
        headers = {"Content-Type": "application/json"}
        answer = http.request(method, f"/v1/deployments/{path}", content=body, headers=headers)
        assert answer.status_code == 422, answer.text
        assert answer.json()["type"] == "urn:c4b:problem:invalid-input"
        return str(answer.json()["detail"])

    model = '{"dim": 2, "noise": 0.1, "norm_bound": 1.0}'
    rows = '"candidates": [[1.0, 0.1]], "baseline": [1.0, 0.0]'
    with service.http() as http:
        made = f'{{"model": {model}, "alpha": 0.05, "alpha": 0.5}}'
        assert "the key 'alpha' twice" in refusal("PUT", "twice", made)
        assert http.get("/v1/deployments/twice").status_code == 404
        http.put("/v1/deployments/twice", json={"model": json.loads(model)}).raise_for_status()
        at = "twice/decisions"
        two = f'{{{rows}, "baseline": [1.0, 0.1]}}'
        assert "the key 'baseline' twice" in refusal("POST", at, two)
        within = f'{{{rows}, "context": {{"user": 1, "user": 2}}}}'
        assert "the key 'user' twice" in refusal("POST", at, within)
        batch = f'{{"rounds": [{{{rows}}}, {{{rows}, "baseline": [1.0, 0.1]}}]}}'
        assert "the key 'baseline' twice" in refusal("POST", f"{at}/batch", batch)
        assert http.get("/v1/deployments/twice").json()["state"]["rounds"] == 0
        id_ = http.post(f"/v1/deployments/{at}", json=json.loads(f"{{{rows}}}")).json()["id"]
        outcome = f"{at}/{id_}/outcome"
        assert "the key 'reward' twice" in refusal("PUT", outcome, '{"reward": 0.1, "reward": 0.9}')
        long = "k" * 1000
        within = f'{{{rows}, "context": {{"{long}": 1, "{long}": 2}}}}'
        assert len(refusal("POST", at, within)) < 200
        http.put(f"/v1/deployments/{outcome}", json={"reward": 0.5}).raise_for_status()
