"""Hostile and broken clients are refused with a reason, change nothing, and do not disturb others."""

from __future__ import annotations

import itertools
import json
import resource
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest

from support import raw_http
from support.postgres_server import Server
from support.service_process import Service, serving
from support.token_service import BODY, ROUND

AT = "/v1/deployments/shop"
JSON = {"Content-Type": "application/json"}
SECONDS = 2.0


@pytest.fixture(scope="module")
def limited(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Small limits, on PostgreSQL."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE limited")
    limits = [
        "--timeout",
        f"{SECONDS}",
        "--body-bytes",
        "300000",
        "--candidates",
        "50",
        "--dimension",
        "20",
    ]
    with serving(server.url("limited"), tmp_path_factory.mktemp("limited") / "log", *limits) as running:
        yield running
        assert running.process.poll() is None


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shop(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """A deployment "shop" in each store."""
    running: Service = request.getfixturevalue("service" if request.param == "sqlite" else "limited")
    with running.http() as http:
        http.put(AT, json=BODY).raise_for_status()
        http.post(f"{AT}/decisions", json=ROUND).raise_for_status()
        yield http


@pytest.fixture
def limited_shop(limited: Service) -> Iterator[httpx.Client]:
    with limited.http() as http:
        http.put(AT, json=BODY).raise_for_status()
        yield http


def end(http: httpx.Client) -> str:
    return str(http.get(AT).json()["state"]["hash"])


def about(context: str) -> bytes:
    """A decision with a context as it stands here."""
    return (json.dumps(ROUND)[:-1] + f', "context": {context}}}').encode()


def refused(http: httpx.Client, body: bytes, path: str = "decisions", status: int = 422) -> None:
    before = end(http)
    response = http.post(f"{AT}/{path}", content=body, headers=JSON)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["status"] == status
    assert end(http) == before


# -- what is in a body -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400])
def test_numbers_that_are_none(shop: httpx.Client, number: str) -> None:
    refused(shop, b'{"candidates": [[1.0, %s]], "baseline": [1.0, 0.0]}' % number.encode())
    refused(shop, b'{"candidates": [[1.0, 0.1]], "baseline": [%s, 0.0]}' % number.encode())
    refused(shop, b'{"features": [[1.0, 0.0]], "rewards": [%s]}' % number.encode(), "history")
    refused(shop, b'{"outcomes": [{"id": "shop-1", "reward": %s}]}' % number.encode(), "outcomes")
    if len(number) < 100:  # a whole number of any size is JSON, see below
        refused(shop, about(number))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 150 + "]" * 150,
        '{"a":' * 150 + "1" + "}" * 150,
        "[" * 100_000 + "]" * 100_000,
        "[" * 100_000,
    ],
)
def test_nesting(shop: httpx.Client, text: str) -> None:
    refused(shop, about(text))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"' + b"x" * 1000,
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b"\0",
        b"1" + b"0" * 5000,
        about('"\xff"').decode().encode("latin-1"),
        about('"\\ud800"'),
        about('"\\udc00x"'),
        about('{"\\ud800": 1}'),
        about('"a\nb"'),
        about("1" + "0" * 5000),
        json.dumps(ROUND).encode("utf-16"),
        b'{"candidates": [["1.0", 0.1]], "baseline": [1.0, 0.0]}',
        b'{"candidates": [[true, 0.1]], "baseline": [1.0, 0.0]}',
        b'{"candidates": {"0": [1.0, 0.1]}, "baseline": [1.0, 0.0]}',
        b'{"__class__": "x", "candidates": [], "baseline": [1.0, 0.0]}',
    ],
)
def test_bodies_that_are_none(shop: httpx.Client, body: bytes) -> None:
    refused(shop, body)


@pytest.mark.parametrize(
    "context",
    [
        "-0.0",
        "1" + "0" * 400,
        '"a\\u0000b"',
        '{"\\u0000": ["\\u0000"]}',
        '"\\ud83d\\ude00 \u2028"',
        "5e-324",
        "[" * 99 + "]" * 99,
    ],
)
def test_odd_contexts_come_back(shop: httpx.Client, context: str) -> None:
    response = shop.post(f"{AT}/decisions", content=about(context), headers=JSON)
    assert response.status_code == 200, response.text
    back = shop.get(f"{AT}/decisions/{response.json()['id']}").json()["context"]
    assert repr(back) == repr(json.loads(context))


def test_minus_zero_is_zero(shop: httpx.Client) -> None:
    body = b'{"candidates": [[1.0, -0.0]], "baseline": [1.0, 0.0]}'
    made = shop.post(f"{AT}/decisions", content=body, headers=JSON).json()
    at = f"{AT}/decisions/{made['id']}/outcome"
    assert shop.put(at, content=b'{"reward": -0.0}', headers=JSON).status_code == 200
    assert shop.put(at, content=b'{"reward": 0}', headers=JSON).status_code == 200


def test_a_key_that_is_there_twice_is_refused(shop: httpx.Client) -> None:
    refused(shop, b'{"candidates": 7, "candidates": [[1.0, 0.1]], "baseline": [1.0, 0.0]}')
    refused(shop, b'{"candidates": [[1.0, 0.1]], "candidates": 7, "baseline": [1.0, 0.0]}')


@pytest.mark.parametrize("name", ["a\0b", "\0", "a\nb", "", "\x7f", "\u200b"])
def test_request_ids_that_are_none(shop: httpx.Client, name: str) -> None:
    refused(shop, json.dumps({"rounds": [{**ROUND, "request_id": name}]}).encode(), "decisions/batch")


def test_ids_beyond_their_column(shop: httpx.Client) -> None:
    long = {"rounds": [{**ROUND, "request_id": "x" * 201}]}
    refused(shop, json.dumps(long).encode(), "decisions/batch", 413)
    for key in ("x" * 201, "\x7f", ""):
        response = shop.post(f"{AT}/decisions", json=ROUND, headers={"Idempotency-Key": key})
        assert response.status_code in (400, 422)


def test_odd_request_ids_are_kept(shop: httpx.Client) -> None:
    for name in ("x" * 200, "' OR 1=1; --", "\U0001f600" * 200, "ä", "%00", "{name}"):
        body = {"rounds": [{**ROUND, "request_id": name}]}
        first = shop.post(f"{AT}/decisions/batch", json=body).json()["decisions"]
        assert shop.post(f"{AT}/decisions/batch", json=body).json()["decisions"] == first
        assert shop.get(f"{AT}/decisions/{first[0]['id']}").json()["request_id"] == name


@pytest.mark.parametrize(
    "part", ["%00", "shop%00", "a%2F..", "%F0%9F%98%80", "'", "shop-1%0A", "x" * 101, "-"]
)
def test_names_in_a_path(shop: httpx.Client, part: str) -> None:
    before = end(shop)
    for response in (
        shop.get(f"/v1/deployments/{part}"),
        shop.put(f"/v1/deployments/{part}", json=BODY),
        shop.get(f"{AT}/decisions/{part}"),
        shop.get(f"{AT}/decisions?after={part}"),
        shop.put(f"{AT}/decisions/{part}/outcome", json={"reward": 1.0}),
        shop.put(f"{AT}/decisions/{part}/executed", json={"features": None}),
    ):
        assert response.status_code in (404, 405, 422), response.text
    assert end(shop) == before


def test_the_argument_its_value_and_what_is_wanted_are_told(shop: httpx.Client) -> None:
    def detail_of(body: bytes) -> str:
        answer = shop.post(f"{AT}/decisions", content=body, headers=JSON)
        assert answer.status_code == 422
        assert len(answer.content) < 5000
        return str(answer.json()["detail"])

    text = detail_of(b'{"candidates": [["one", 0.1]], "baseline": [1.0, 0.0]}')
    assert text == "candidates[0][0] = 'one': Input should be a valid number"
    long = detail_of(b'{"candidates": [["%s", 0.1]], "baseline": [1.0, 0.0]}' % (b"x" * 200_000))
    assert "candidates[0][0] = 'xxxxx" in long
    assert detail_of(b'{"candidates": []}') == "baseline: Field required"  # there is no value
    assert detail_of(b'{"candidates": [').startswith("body: must be JSON (EOF")
    assert "limit = 'x': " in shop.get(f"{AT}/decisions?limit=x").json()["detail"]


# -- sizes -----------------------------------------------------------------------------------------


def test_too_many_bytes(limited: Service, limited_shop: httpx.Client) -> None:
    before = end(limited_shop)
    refused(limited_shop, b" " * 300_001, status=413)
    pieces = (b" " * 10_000 for _ in range(40))
    response = limited_shop.post(f"{AT}/decisions", content=pieces, headers=JSON)  # chunked
    assert response.status_code == 413
    whole = json.dumps(ROUND).encode()
    assert (
        limited_shop.post(f"{AT}/decisions", content=whole.ljust(300_000), headers=JSON).status_code
        == 200
    )
    assert end(limited_shop) != before
    for length in (b"-1", b"1e3", b"0x10", b"1, 1", b"99999999999999999999999"):
        text = raw_http.head(
            f"POST {AT}/decisions", raw_http.JSON, b"Content-Length: " + length + b"\r\n"
        )
        assert raw_http.exchange(limited.port, text + b"{}")[0] in (400, 413), length


def test_whoever_sends_too_much_hears_it(limited: Service) -> None:
    """Not a broken connection: what still comes is read and thrown away."""
    size = 30_000_000
    text = raw_http.head(f"POST {AT}/decisions", raw_http.JSON, b"Content-Length: %d\r\n" % size)
    with raw_http.connect(limited.port) as connection:
        connection.sendall(text + b" " * size)
        assert raw_http.read_response(connection)[0] == 413
        connection.sendall(raw_http.head("GET /healthz"))  # and the next request is understood
        assert raw_http.read_response(connection)[0] == 200


def test_too_much_of_something(limited_shop: httpx.Client) -> None:
    refused(limited_shop, json.dumps({**ROUND, "candidates": [[1.0, 0.1]] * 51}).encode(), status=413)
    refused(limited_shop, json.dumps({"rounds": [ROUND] * 1001}).encode(), "decisions/batch", 413)
    many = {"outcomes": [{"id": "shop-1", "reward": 1.0}] * 1001}
    refused(limited_shop, json.dumps(many).encode(), "outcomes", 413)
    refused(limited_shop, about('"' + "x" * 20_000 + '"'), status=413)
    for dim, status in ((21, 413), (10**400, 413), (0, 422), (-1, 422), (2.5, 422), (20, 201)):
        response = limited_shop.put(
            "/v1/deployments/wide",
            content=json.dumps({"model": {**BODY["model"], "dim": dim}}),
            headers=JSON,
        )
        assert response.status_code == status, response.text
    for query in ("limit=0", "limit=1001", "limit=x", "limit=" + "9" * 400, "order=any"):
        assert limited_shop.get(f"{AT}/decisions?{query}").status_code == 422, query


# -- HTTP ------------------------------------------------------------------------------------------


def test_only_json(shop: httpx.Client) -> None:
    before = end(shop)
    body = json.dumps(ROUND).encode()
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
    ):
        response = shop.post(f"{AT}/decisions", content=body, headers={"Content-Type": kind})
        assert response.status_code == 415, kind
    assert shop.post(f"{AT}/decisions", content=body).status_code == 415
    for packing in ("gzip", "br", "x" * 1000):
        headers = {**JSON, "Content-Encoding": packing}
        assert shop.post(f"{AT}/decisions", content=b"\x1f\x8b", headers=headers).status_code == 415
    assert end(shop) == before
    spelled = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert shop.post(f"{AT}/decisions", content=body, headers=spelled).status_code == 200


def test_methods(service: Service) -> None:
    with service.http() as http:
        for method in ("DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND"):
            response = http.request(method, f"{AT}/decisions")
            assert response.status_code == 405
            assert response.headers["allow"] == "GET, POST"
            if method != "HEAD":  # whose answer has no body
                assert response.json()["detail"] == f"{method} is not for {AT}/decisions; use GET, POST"
        assert http.delete(AT).headers["allow"] == "GET, PUT"
    for line in ("FOO /", "GET", "get /", "CONNECT a:1", "\x16\x03\x01"):
        assert raw_http.exchange(service.port, raw_http.head(line))[0] in (0, 400), line


def test_load_balancers_probe_by_head(service: Service) -> None:
    with service.http() as http:
        for path in ("/healthz", "/readyz", "/metrics", "/"):
            asked, probed = http.get(path), http.head(path)
            assert (probed.status_code, probed.content) == (200, b""), path
            assert probed.headers["content-type"] == asked.headers["content-type"]
            assert http.get("/healthz").json() == {"done": True}  # the connection is not out of step
        assert http.delete("/readyz").headers["allow"] == "GET, HEAD"
    assert httpx.head(f"{service.url}/readyz", headers={"Host": "shop.example"}).status_code == 403


def test_requests_that_two_could_read_in_two_ways(service: Service) -> None:
    for lines in (
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Content-Length : 2\r\n",
        b" folded: x\r\n",
    ):
        text = raw_http.head(f"POST {AT}/decisions", raw_http.JSON, lines) + b"{}"
        assert raw_http.exchange(service.port, text)[0] in (0, 400), lines


def test_long_heads(service: Service) -> None:
    assert raw_http.exchange(service.port, raw_http.head("GET /" + "x" * 8000))[0] == 404
    assert raw_http.exchange(service.port, raw_http.head("GET /" + "x" * 100_000))[0] in (
        0,
        400,
        414,
        431,
    )
    few = [b"x-%d: y\r\n" % n for n in range(100)]
    assert raw_http.exchange(service.port, raw_http.head("GET /healthz", *few))[0] == 200
    for lines in ([b"x-%d: %s\r\n" % (n, b"y" * 1000) for n in range(5000)], [b"x: " + b"y" * 5_000_000]):
        assert raw_http.exchange(service.port, raw_http.head("GET /healthz", *lines))[0] in (0, 431)
    chunks = raw_http.head(f"POST {AT}/decisions", raw_http.JSON, b"Transfer-Encoding: chunked\r\n")
    trailers = [b"x-%d: %s\r\n" % (n, b"y" * 1000) for n in range(5000)]
    assert raw_http.exchange(service.port, chunks, b"2\r\n{}\r\n0\r\n", *trailers, b"\r\n")[0] in (
        0,
        422,
        431,
    )


def test_old_and_careful_and_hasty_clients(service: Service) -> None:
    old = b"GET /healthz HTTP/1.0\r\n" + raw_http.HOST + b"\r\n"
    with raw_http.connect(service.port) as connection:
        connection.sendall(old)
        assert raw_http.read_response(connection)[0] == 200
        assert connection.recv(1) == b""
    body = json.dumps(ROUND).encode()
    with service.http() as http:
        http.put(AT, json=BODY)
    size = b"Content-Length: %d\r\n" % len(body)
    with raw_http.connect(service.port) as connection:
        connection.sendall(
            raw_http.head(f"POST {AT}/decisions", raw_http.JSON, size, b"Expect: 100-continue\r\n")
        )
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert raw_http.read_response(connection)[0] == 200
    with raw_http.connect(service.port) as connection:
        connection.sendall(
            b"".join(raw_http.head("GET /healthz", b"X-Request-ID: p-%d\r\n" % n) for n in range(50))
        )
        text = b""
        while text.count(b'{"done":true}') < 50:
            part = connection.recv(65536)
            assert part, "hung up before the fiftieth answer"
            text += part
        positions = [text.index(b"x-request-id: p-%d\r\n" % n) for n in range(50)]
        assert positions == sorted(positions)


# -- time ------------------------------------------------------------------------------------------


def test_slow_clients(service: Service, limited: Service) -> None:
    """All at once: headers and bodies that trickle, bytes after an answer, answers not taken."""
    head = raw_http.head("POST /v1/nowhere", raw_http.JSON, b"Content-Length: 1000\r\n")
    body = raw_http.head(f"POST {AT}/decisions", raw_http.JSON, b"Content-Length: 1000\r\n")
    named = raw_http.head("PUT /v1/deployments/audit", raw_http.JSON, b"Content-Length: 1000\r\n")
    cases: dict[str, tuple[Service, bytes, bytes, float]] = {
        "nothing": (limited, b"", b"", SECONDS),
        "headers": (limited, b"GET /healthz HTTP/1.1\r\n", b"a: b\r\n", SECONDS),
        "line ends": (limited, b"", b"\r\n", SECONDS),
        "line ends after an answer": (limited, raw_http.head("GET /healthz"), b"\r\n", SECONDS),
        "the rest after an answer": (limited, head, b"x", SECONDS),
        "a body": (limited, body, b" ", SECONDS),
        "a body, named as what may take long": (limited, named, b" ", SECONDS),
        "headers, usual limits": (service, b"GET /healthz HTTP/1.1\r\n", b"a: b\r\n", 10.0),
        "the rest, usual limits": (service, head, b"x", 10.0),
    }

    def lived(case: tuple[Service, bytes, bytes, float]) -> float:
        running, first, then, least = case
        with raw_http.connect(running.port) as connection:
            return raw_http.seconds_open(
                connection, itertools.chain([first], itertools.repeat(then)), 0.25, least + 8.0
            )

    with ThreadPoolExecutor(len(cases) + 2) as pool:
        taken = pool.submit(_not_taken, limited)
        slow = pool.submit(raw_http.exchange, limited.port, body)
        lifetimes = dict(zip(cases, pool.map(lived, cases.values()), strict=True))
        status, top, _ = slow.result()
        assert status == 408
        assert b"connection: close" in top
        assert b"retry-after" in top
        assert taken.result()
    for what, (_, _, _, least) in cases.items():
        assert least - 0.5 <= lifetimes[what] < least + 6.0, (what, lifetimes)


def _not_taken(running: Service) -> bool:
    """Whether the service lets go of a connection whose answers nobody takes."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", running.port))
        connection.sendall(raw_http.head("GET /swagger/swagger-ui-bundle.js") * 20)
        ends = f":{running.port:04X} ", f":{connection.getsockname()[1]:04X} "
        for _ in range(100):
            time.sleep(0.1)
            table = Path("/proc/net/tcp").read_text().splitlines()
            (there,) = [row for row in table if ends[0] in row[:20] and ends[1] in row[20:34]] or [""]
            if not there or there.split()[9] == "0":  # no process has it
                return True
    return False


def test_two_thousand_that_say_nothing(service: Service, name: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with service.http() as http, ExitStack() as lines:
            at = f"/v1/deployments/{name}"
            http.put(at, json=BODY).raise_for_status()
            for _ in range(2000):
                lines.enter_context(raw_http.connect(service.port))
            for _ in range(5):
                assert http.post(f"{at}/decisions", json=ROUND).status_code == 200
            with service.http() as another:
                assert another.get("/readyz").status_code == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_clients_that_go_away(limited: Service, limited_shop: httpx.Client) -> None:
    before = end(limited_shop)
    body = json.dumps(ROUND).encode()
    size = b"Content-Length: %d\r\n" % len(body)
    text = raw_http.head(f"POST {AT}/decisions", raw_http.JSON, size) + body
    for cut in range(1, len(text) - 1, 11):
        with raw_http.connect(limited.port) as connection:
            connection.sendall(text[:cut])
    assert end(limited_shop) == before
    for _ in range(5):  # after the last byte it may be carried out, whole
        with raw_http.connect(limited.port) as connection:
            connection.sendall(text)


def test_after_all_of_it(service: Service, limited: Service) -> None:
    """The same processes answer, every journal is sound, and nothing happened that must not."""
    for running in (service, limited):
        assert running.process.poll() is None
        with running.http() as http:
            assert http.get("/readyz").status_code == 200
            listed = http.get("/v1/deployments").json()
            assert not listed["broken"]
            for each in listed["deployments"]:
                report = http.post(f"/v1/deployments/{each['name']}/audit").json()
                assert report["clean"], report
        log = running.log.read_text()
        assert "Traceback" not in log
        assert "must not happen" not in log
        assert "Exception in ASGI" not in log
