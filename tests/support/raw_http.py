"""HTTP requests as bytes, for requests that no HTTP library sends."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from contextlib import suppress

HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"


def connect(port: int, seconds: float = 20.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), seconds)


def head(line: str, *lines: bytes) -> bytes:
    """A request's first line and headers."""
    return line.encode() + b" HTTP/1.1\r\n" + HOST + b"".join(lines) + b"\r\n"


def read_response(connection: socket.socket) -> tuple[int, bytes, bytes]:
    """Status, headers and body of the next response; status 0 if the connection ended instead."""
    text = b""
    while b"\r\n\r\n" not in text:
        part = _more(connection)
        if not part:
            return 0, b"", b""
        text += part
        if text.startswith(b"HTTP/1.1 100"):
            text = text.partition(b"\r\n\r\n")[2]
    top, _, body = text.partition(b"\r\n\r\n")
    top = top.lower()
    lengths = [each for each in top.split(b"\r\n") if each.startswith(b"content-length:")]
    size = int(lengths[0].split(b":")[1]) if lengths else 0
    while len(body) < size and (part := _more(connection)):
        body += part
    return int(top.split()[1]), top, body


def _more(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


def exchange(port: int, *parts: bytes) -> tuple[int, bytes, bytes]:
    """Send the parts and return the first response."""
    with connect(port) as connection:
        with suppress(ConnectionError):  # the response may come before everything is sent
            for part in parts:
                connection.sendall(part)
        return read_response(connection)


def seconds_open(connection: socket.socket, pieces: Iterable[bytes], every: float, most: float) -> float:
    """Seconds until the service closes the connection while pieces are sent; at most ``most``."""
    began = time.monotonic()
    connection.settimeout(every)
    for piece in pieces:
        if time.monotonic() - began >= most:
            break
        try:
            if piece:
                connection.sendall(piece)
            while connection.recv(65536):
                pass
            break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    else:
        raise AssertionError("the pieces ran out")
    return min(time.monotonic() - began, most)
