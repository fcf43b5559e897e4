"""The address of the service: taken before anybody is told that it is served."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from c4b.errors import AddressUnavailable

_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_BACKLOG = 2048
"""Connections that wait to be accepted."""


@contextmanager
def taken(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Sockets bound to ``port`` at every address of ``host``. Callers are refused until ``listen``."""
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        absent: OSError | None = None
        for family, kind, protocol, _, where in _addresses(host, port):
            try:
                made = stack.enter_context(socket.socket(family, kind, protocol))
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                # port 0: the system chooses one, the same for all addresses
                made.bind((where[0], number(sockets) if sockets else port, *where[2:]))
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise _refused(host, port, error) from error
                absent = error  # a name may have an address that this machine lacks: `localhost` and IPv6
            else:
                sockets.append(made)
        if absent is not None and not sockets:
            raise _refused(host, port, absent) from absent
        yield sockets


def listen(sockets: list[socket.socket], host: str) -> None:
    """From here on callers wait to be answered; of two who took the same address, the second fails."""
    for each in sockets:
        try:
            each.listen(_BACKLOG)
        except OSError as error:
            raise _refused(host, number(sockets), error) from error


def number(sockets: list[socket.socket]) -> int:
    """The port that was taken."""
    return int(sockets[0].getsockname()[1])


def _addresses(host: str, port: int) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AddressUnavailable(
            f"host {host!r} cannot be found ({reason}); choose an address of this machine with --host"
        ) from error
    return list(dict.fromkeys(found))  # a name may be listed twice


def _refused(host: str, port: int, error: OSError) -> AddressUnavailable:
    where = f"port {port} of {host}"
    if error.errno == errno.EADDRINUSE:
        return AddressUnavailable(f"{where} is in use; choose another with --port")
    if error.errno == errno.EACCES:
        return AddressUnavailable(f"{where} needs privileges; choose one of 1024 or more with --port")
    if error.errno in _ABSENT:
        return AddressUnavailable(f"{host} is no address of this machine; choose another with --host")
    return AddressUnavailable(f"{where} cannot be used ({error.strerror})")
