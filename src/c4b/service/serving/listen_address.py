"""Bind the service's sockets, so that an address in use is reported before anything else is done."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from c4b.errors import AddressUnavailable

_NOT_OF_THIS_MACHINE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_BACKLOG = 2048
"""Connections that wait to be accepted."""


@contextmanager
def bound_sockets(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Bind ``port`` at every address of ``host``. Connections are refused until ``listen``."""
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        skipped: OSError | None = None
        for family, kind, protocol, _, address in _addresses(host, port):
            try:
                bound = stack.enter_context(socket.socket(family, kind, protocol))
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                # with port 0 the system chooses a port, which is then used for all addresses
                bound.bind((address[0], port_of(sockets) if sockets else port, *address[2:]))
            except OSError as error:
                if error.errno not in _NOT_OF_THIS_MACHINE:
                    raise _unavailable(host, port, error) from error
                skipped = error  # e.g. the IPv6 address of `localhost` on a machine without IPv6
            else:
                sockets.append(bound)
        if skipped is not None and not sockets:
            raise _unavailable(host, port, skipped) from skipped
        yield sockets


def listen(sockets: list[socket.socket], host: str) -> None:
    """Accept connections. Of two processes that bound the same address, the second one fails here."""
    for each in sockets:
        try:
            each.listen(_BACKLOG)
        except OSError as error:
            raise _unavailable(host, port_of(sockets), error) from error


def port_of(sockets: list[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1])


def _addresses(host: str, port: int) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    try:
        listed = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AddressUnavailable(
            f"host {host!r} cannot be found ({reason}); choose an address of this machine with --host"
        ) from error
    return list(dict.fromkeys(listed))  # a name may be listed twice


def _unavailable(host: str, port: int, error: OSError) -> AddressUnavailable:
    where = f"port {port} of {host}"
    if error.errno == errno.EADDRINUSE:
        return AddressUnavailable(f"{where} is in use; choose another with --port")
    if error.errno == errno.EACCES:
        return AddressUnavailable(f"{where} needs privileges; choose one of 1024 or more with --port")
    if error.errno in _NOT_OF_THIS_MACHINE:
        return AddressUnavailable(f"{host} is no address of this machine; choose another with --host")
    return AddressUnavailable(f"{where} cannot be used ({error.strerror})")
