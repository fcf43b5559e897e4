"""Decisions and outcomes are answered the same by the short way and by the framework's.

A body of unknown size goes the framework's way, so every request is sent twice: as bytes, and in pieces.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4b.service.routing.hot_routes import HotRoutes
from support.service_process import Service
from support.token_service import BODY, ROUND, TokenService

KEYS = ("content-type", "retry-after", "www-authenticate", "cache-control", "content-security-policy")
Headers = dict[str, str | bytes]
JSON: Headers = {"Content-Type": "application/json"}


@pytest.fixture
def shop(service: Service, name: str) -> Iterator[tuple[httpx.Client, str]]:
    with service.http() as http:
        http.put(f"/v1/deployments/{name}", json=BODY).raise_for_status()
        yield http, f"/v1/deployments/{name}/decisions"


def both_ways(
    http: httpx.Client, method: str, path: str, body: bytes, headers: Headers
) -> tuple[httpx.Response, httpx.Response]:
    def pieces() -> Iterator[bytes]:
        yield body[:7]
        yield body[7:]

    short = http.request(method, path, content=body, headers=headers)
    long = http.request(method, path, content=pieces(), headers=headers)
    assert "transfer-encoding" in long.request.headers
    assert "transfer-encoding" not in short.request.headers
    return short, long


def seen(response: httpx.Response) -> tuple[int, bytes, list[str | None]]:
    return response.status_code, response.content, [response.headers.get(key) for key in KEYS]


def test_a_decision_and_its_outcome(shop: tuple[httpx.Client, str]) -> None:
    http, at = shop
    keyed: Headers = {**JSON, "Idempotency-Key": "r-ü".encode()}
    body = json.dumps({**ROUND, "labels": ["red", "blue"], "context": {"user": "ü"}}).encode()
    short, long = both_ways(http, "POST", at, body, keyed)
    assert short.status_code == 200
    assert seen(short) == seen(long)
    made = short.json()["id"]
    for outcome in ({"reward": 0.5}, {"reward": 0.6}, {"lost": True}, {"reward": "much"}, {}):
        one, other = both_ways(http, "PUT", f"{at}/{made}/outcome", json.dumps(outcome).encode(), JSON)
        assert seen(one) == seen(other), outcome
    shown = http.get(f"{at}/{made}").json()
    assert shown["reward"] == 0.5


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'{"candidates": [[1, 2]]}',
        b'{"candidates": [[NaN, 2]], "baseline": [1, 2]}',
        b'{"candidates": [[1, 2, 3]], "baseline": [1, 2]}',
        b'{"candidates": [["a", 2]], "baseline": [1, 2], "more": 1}',
        b'{"candidates": [[1e308, 2]], "baseline": [1, 2], "baseline_mean": 1}',
        b'{"candidates": [[1, 2]], "baseline": [1, 2], "baseline": [1, 0]}',
    ],
)
def test_bodies_that_are_refused(shop: tuple[httpx.Client, str], body: bytes) -> None:
    http, at = shop
    short, long = both_ways(http, "POST", at, body, JSON)
    assert short.status_code == 422
    assert seen(short) == seen(long)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Idempotency-Key": "k" * 1000}, 422),
    ],
)
def test_headers_that_are_refused(shop: tuple[httpx.Client, str], change: Headers, status: int) -> None:
    http, at = shop
    short, long = both_ways(http, "POST", at, json.dumps(ROUND).encode(), {**JSON, **change})
    assert short.status_code == status
    assert seen(short) == seen(long)


@pytest.mark.parametrize(
    "at",
    [
        "/v1/deployments/nobody/decisions",
        f"/v1/deployments/{'n' * 101}/decisions",
        "/v1/deployments/a%2Fb/decisions",
        "/v1/deployments//decisions",
    ],
)
def test_places_that_do_not_exist(service: Service, at: str) -> None:
    with service.http() as http:
        short, long = both_ways(http, "POST", at, json.dumps(ROUND).encode(), JSON)
    assert short.status_code in (404, 405, 422)
    assert seen(short) == seen(long)


def test_tokens(token_service: TokenService) -> None:
    body = json.dumps(ROUND).encode()
    for token, status in (
        (None, 401), (token_service.revoked, 401), (token_service.read, 403), (token_service.mine, 403),
    ):  # fmt: skip
        with token_service.service.http(token) as http:
            short, long = both_ways(http, "POST", "/v1/deployments/other/decisions", body, JSON)
        assert short.status_code == status
        assert seen(short) == seen(long)


NUMBERS = st.one_of(
    st.floats(-2.0, 2.0),
    st.integers(-2, 2),
    st.sampled_from([1e308, 10**400, True, None, "1", [1.0], {}]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(-3.0, 3.0), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ROUNDS = st.fixed_dictionaries(
    {},
    optional={
        "candidates": st.lists(st.lists(NUMBERS, min_size=1, max_size=3), max_size=3) | VALUES,
        "baseline": st.just(ROUND["baseline"]) | st.lists(NUMBERS, max_size=3) | VALUES,
        "baseline_mean": VALUES,
        "labels": st.lists(st.text(max_size=3), max_size=3) | VALUES,
        "context": VALUES,
        "more": VALUES,
    },
)
REQUESTS = st.one_of(
    st.just(ROUND), ROUNDS, VALUES, ROUNDS.map(lambda some: {**ROUND, **some}),
    VALUES.map(lambda context: {**ROUND, "context": context}),
)  # fmt: skip
OUTCOMES = st.fixed_dictionaries(
    {}, optional={"reward": NUMBERS, "lost": VALUES, "independent": st.booleans(), "more": VALUES}
)
DAMAGE = st.sampled_from([lambda body: body, lambda body: body[:-1], lambda body: b"\xff" + body])
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Content-Type": st.sampled_from(
            ["application/json", "Application/JSON ; charset=utf-8", "text/plain", "", "application/xml"]
        ),
        "Content-Encoding": st.sampled_from(["identity", "gzip", ""]),
        "Idempotency-Key": st.sampled_from([b"k", b"", "ü".encode(), b"\xfc", b"k" * 200, b"k" * 201]),
        "Authorization": st.sampled_from(["Bearer", "Bearer nonsense", "bearer  c4b_x_y", "Basic YTpi"]),
        "Origin": st.sampled_from(["http://elsewhere.example", "null"]),
    },
)


def answer(response: httpx.Response) -> object:
    """All that a client sees, except what is new in every decision and every response."""
    headers = {k: v for k, v in response.headers.items() if k not in ("date", "x-request-id")}
    content: object = response.content
    if response.status_code == 200 and "receipt" in response.json():
        content = sorted(response.json())
        del headers["content-length"]
    return response.status_code, content, headers


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_request(token_service: TokenService, data: st.DataObject) -> None:
    draw, admin = data.draw, token_service.admin
    place = draw(st.sampled_from(["mine", "mine", "mine", "other", "nobody", "a b", "n" * 101]))
    headers: Headers = {**JSON, **draw(HEADERS)}
    token = draw(st.sampled_from([admin, admin, token_service.mine, token_service.read, None]))
    if draw(st.booleans()):
        method, path, value = "POST", f"/v1/deployments/{place}/decisions", draw(REQUESTS)
    else:
        id_ = draw(st.sampled_from(["mine-1", "mine-1-0123456789ab", "i" * 151, made(token_service)]))
        method, path = "PUT", f"/v1/deployments/{place}/decisions/{id_}/outcome"
        value = draw(OUTCOMES | VALUES)
    body = draw(DAMAGE)(json.dumps(value).encode())
    with token_service.service.http(token) as http:
        short, long = both_ways(http, method, path, body, headers)
    assert answer(short) == answer(long)


def made(token_service: TokenService) -> str:
    """The id of a decision of "mine"; always the same one."""
    with token_service.service.http(token_service.admin) as http:
        keyed = {"Idempotency-Key": "always"}
        response = http.post("/v1/deployments/mine/decisions", json=ROUND, headers=keyed)
    return str(response.json()["id"])


def test_of_several_headers_with_one_name_the_first_counts(token_service: TokenService) -> None:
    body, at = json.dumps(ROUND).encode(), "/v1/deployments/mine/decisions"
    right, wrong = f"Bearer {token_service.mine}", "Bearer nonsense"
    for values, status in (((right, wrong), 200), ((wrong, right), 401)):
        headers = [("Content-Type", "application/json"), *(("Authorization", each) for each in values)]
        with token_service.service.http() as http:
            short = http.post(at, content=body, headers=headers)
            long = http.post(at, content=iter([body]), headers=headers)
        assert (short.status_code, long.status_code) == (status, status)


def test_both_are_counted_and_logged_as_one_route(shop: tuple[httpx.Client, str]) -> None:
    http, at = shop
    route = 'route="/v1/deployments/{name}/decisions",status="200"'

    def counted() -> float:
        lines = http.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if route in line and "_total{" in line)

    before = counted()
    both_ways(http, "POST", at, json.dumps(ROUND).encode(), JSON)
    assert counted() == before + 2


@pytest.mark.parametrize("ending", ["Connection: close\r\n", "", "X-Request-ID: mine\r\n"])
def test_requests_in_one_packet(shop: tuple[httpx.Client, str], service: Service, ending: str) -> None:
    """Three decisions are sent before the first is answered; the last may end the connection."""
    _, at = shop
    body = json.dumps(ROUND)
    common = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    first = f"POST {at} HTTP/1.1\r\n{common}\r\n{body}"
    last = f"POST {at} HTTP/1.1\r\n{common}{ending}\r\n{body}"
    with socket.create_connection(("127.0.0.1", service.port), timeout=60.0) as connection:
        connection.sendall(f"{first}{first}{last}".encode())
        answers = [http_answer(connection) for _ in range(3)]
        assert answers[0][0].splitlines()[0] == "HTTP/1.1 200 OK"
        seqs = [json.loads(content)["receipt"]["seq"] for _, content in answers]
        assert seqs == [seqs[0], seqs[0] + 1, seqs[0] + 2]
        names = [[line.split(":")[0] for line in head.splitlines()[1:]] for head, _ in answers]
        closing = ["connection"] if "close" in ending else []
        assert names[0] == names[1] == names[2][: len(names[0])]
        assert names[2][len(names[0]) :] == closing
        assert ("x-request-id: mine" in answers[2][0]) is ("mine" in ending)
        if closing:
            assert connection.recv(1) == b""


def http_answer(connection: socket.socket) -> tuple[str, bytes]:
    """The head and the body of the next response, and no byte of the one after it."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    content = b""
    while len(content) < size:
        content += connection.recv(size - len(content))
    return head.decode().rstrip(), content


@pytest.mark.parametrize(
    ("method", "path", "headers", "short"),
    [
        ("POST", "/v1/deployments/shop/decisions", {b"content-length": b"100"}, True),
        ("PUT", "/v1/deployments/shop/decisions/shop-1/outcome", {b"content-length": b"9"}, True),
        ("PUT", "/v1/deployments/shop/decisions", {b"content-length": b"9"}, False),
        ("POST", "/v1/deployments/shop/decisions/shop-1/outcome", {b"content-length": b"9"}, False),
        ("GET", "/v1/deployments/shop/decisions", {}, False),
        ("POST", "/v1/deployments/shop/decisions", {}, False),
        ("POST", "/v1/deployments/shop/decisions", {b"content-length": b"0"}, False),
        ("POST", "/v1/deployments/shop/decisions/batch", {b"content-length": b"9"}, False),
    ],
)
def test_what_goes_the_short_way(
    method: str, path: str, headers: dict[bytes, bytes], short: bool
) -> None:
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers.items())}
    assert HotRoutes().takes(scope) is short
    assert ("route" in scope) is short
