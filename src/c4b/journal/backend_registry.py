"""The backend that keeps the journals of a URL is chosen by the URL's scheme.

Another package registers a backend in one of two ways. It calls ``register_backend``, or it declares an
entry point of the group ``c4b.journals`` whose name is the scheme; then it need not be imported first::

    [project.entry-points."c4b.journals"]
    redis = "my_package.journals:RedisBackend"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points

from c4b.errors import InvalidInput, StoreUnavailable
from c4b.journal.backend import JournalBackend

BackendFactory = Callable[[str, bool], JournalBackend]
"""Called with the URL and whether the store may be created; raises ``StoreUnavailable`` if it must exist
and does not."""

GROUP = "c4b.journals"
_SCHEME = re.compile(r"[a-z][a-z0-9.-]*")


def _sql(url: str, create: bool) -> JournalBackend:
    backend: JournalBackend = import_module("c4b.journal.sql.sql_backend").SqlBackend(url, create)
    return backend


def _memory(url: str, create: bool) -> JournalBackend:
    backend: JournalBackend = import_module("c4b.journal.memory_backend").MemoryBackend(url, create)
    return backend


_factories: dict[str, BackendFactory] = {"sqlite": _sql, "postgresql": _sql, "memory": _memory}
_FORMS = {
    "sqlite": "sqlite:///FILE",
    "postgresql": "postgresql://USER:PASSWORD@HOST/DATABASE",
    "memory": "memory://NAME",
}


def register_backend(scheme: str, factory: BackendFactory) -> None:
    """Let ``factory`` open every URL that begins with ``scheme://`` or ``scheme+...://``."""
    if not isinstance(scheme, str) or not _SCHEME.fullmatch(scheme):
        raise InvalidInput("scheme", scheme, "must be lower-case letters, digits, '.' or '-'")
    if scheme in _factories:
        raise InvalidInput("scheme", scheme, "is registered already; choose another one")
    _factories[scheme] = factory


def schemes() -> list[str]:
    """The schemes that can be opened, with those of installed packages."""
    return sorted({*_factories, *(point.name for point in entry_points(group=GROUP))})


def open_backend(url: str, create: bool = False) -> JournalBackend:
    """The store at ``url``; with ``create`` it may be made, else it must exist."""
    scheme = _scheme(url)
    factory = _factories.get(scheme) or _installed(scheme)
    return factory(url, create)


def _scheme(url: object) -> str:
    """What is before the ``://``, without the driver; never a part that may hold a password."""
    if not isinstance(url, str):
        raise InvalidInput("url", url, _remedy())
    scheme, separator, _ = url.partition("://")
    scheme = scheme.partition("+")[0].lower()
    if not separator or not _SCHEME.fullmatch(scheme):
        raise InvalidInput("url", "(hidden: it may hold a password)", _remedy())
    return scheme


def _installed(scheme: str) -> BackendFactory:
    for point in entry_points(group=GROUP, name=scheme):
        try:
            factory: BackendFactory = point.load()
        except Exception as error:  # a package of somebody else, which may raise anything
            raise StoreUnavailable(
                f"the backend {point.value} for {scheme}:// cannot be imported ({error}); "
                "repair or reinstall the package that provides it"
            ) from error
        return _factories.setdefault(scheme, factory)
    raise InvalidInput("url", scheme, _remedy())


def _remedy() -> str:
    *first, last = [_FORMS.get(scheme, f"{scheme}://...") for scheme in _FORMS | dict.fromkeys(schemes())]
    return f"must be {', '.join(first)} or {last}"
