"""Requests generated from the OpenAPI document, valid and invalid: every response is as described."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from requests import Session
from schemathesis import APIOperation, Case, GenerationMode, Response, checks

from support.token_service import BODY, ROUND, TokenService

EXAMPLES = 3
"""Of each operation and mode, beside the systematic ones."""
EXCLUDED_CHECKS = [
    checks.positive_data_acceptance,
    checks.ignored_auth,
    checks.object_level_authorization,
]
"""Not run: shapes depend on the deployment's dimension; access has tests of its own."""
Try = Callable[[Case], None]


def operations(token_service: TokenService, tokens: bool) -> list[APIOperation]:
    """As described; with ``tokens`` some requests carry ones that are made up."""
    config = schemathesis.Config.from_dict(
        {"seed": 1, "request-timeout": 60, "generation": {"with-security-parameters": tokens}}
    )
    schema = schemathesis.openapi.from_url(f"{token_service.service.url}/openapi.json", config=config)
    return [result.ok() for result in schema.get_all_operations()]


@pytest.fixture(scope="module")
def shop(token_service: TokenService) -> Iterator[httpx.Client]:
    with token_service.service.http(token_service.admin) as http:
        http.put("/v1/deployments/homepage", json=BODY).raise_for_status()  # as in the examples
        http.post("/v1/deployments/homepage/decisions", json=ROUND).raise_for_status()
        yield http


def every(operation: APIOperation, attempt: Try, id_: str = "homepage-1") -> None:
    """The corners of every parameter, then examples: valid ones, invalid ones; at a real deployment
    and at ones that are made up."""
    modes = list(GenerationMode)
    schema = operation.schema
    for case in schema.iter_coverage_cases(
        operation,
        generation_modes=modes,
        generation_config=schema.config.generation_for(operation=operation),
    ):
        attempt(case)
    parameters = [{"name": "homepage", "id": id_}, {}] if "{name}" in operation.path else [{}]
    for mode in modes:
        for values in parameters:
            known = {key: value for key, value in values.items() if f"{{{key}}}" in operation.path}
            strategy = operation.as_strategy(mode, path_parameters=known)

            @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
            @given(strategy)
            def examples(case: Case) -> None:
                attempt(case)

            with suppress(Unsatisfiable):  # nothing in it that could be wrong
                examples()


def test_every_answer_is_as_described(token_service: TokenService, shop: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {token_service.admin}"}

    def state() -> dict[str, bytes]:
        """What every deployment's journal ends with. Windows of those made up close with time alone."""
        with closing(sqlite3.connect(token_service.service.store.removeprefix("sqlite:///"))) as file:
            heads = dict(file.execute("SELECT name, head_hash FROM c4b_deployment"))
        return {
            name: end if name in ("homepage", "mine", "other") else b"" for name, end in heads.items()
        }

    def attempt(case: Case) -> None:
        nonlocal before
        answer: Response = case.call(headers=headers, session=session)
        case.validate_response(answer, excluded_checks=EXCLUDED_CHECKS, headers=headers)
        now = state()
        assert answer.status_code < 400 or now == before, case
        before = now

    before = state()
    with Session() as session:
        first = shop.get("/v1/deployments/homepage/decisions", params={"order": "oldest"}).json()
        for operation in operations(token_service, tokens=False):
            every(operation, attempt, first["decisions"][0]["id"])
    assert len(before) > 3
    for name in before:
        found = shop.post(f"/v1/deployments/{name}/audit").json()
        assert found["clean"], str(found)


def test_nothing_without_a_token(token_service: TokenService) -> None:
    public = ("/healthz", "/readyz")

    def attempt(case: Case) -> None:
        answer: Response = case.call(session=session)
        if case.operation.path not in public and answer.status_code != 405:
            assert answer.status_code in (401, 404), case

    with Session() as session:
        for operation in operations(token_service, tokens=True):
            every(operation, attempt)
