"""The files of the cache of compiled kernels: what is damaged counts as not there.

Machine code that a full disk cut off, or that lost its content with the power, must not be executed, and
must not keep anybody from compiling it again. So the name of a file with machine code says its SHA-256,
and the index of a kernel, which says what is in which file, begins with its own. Such names also keep
two processes that compile at the same time from writing different code into one file.
"""

import hashlib
import pickle
from pathlib import Path
from typing import Any

from numba.core import caching, serialize

_dumps: Any = serialize.dumps
_DIGEST = hashlib.sha256().digest_size


class CheckedFiles(caching.IndexDataCacheFile):
    """Numba's index and data of one kernel."""

    def save(self, key: Any, data: Any) -> None:
        content = _dumps(data)
        name = f"{self._index_name.removesuffix('.nbi')}.{hashlib.sha256(content).hexdigest()}.nbc"
        self._write(name, content)
        self._save_index(self._load_index() | {key: name})

    def load(self, key: Any) -> Any:
        """None: it is not there."""
        name = self._load_index().get(key, "")
        content = self._read(name) if name else None
        if content is None or hashlib.sha256(content).hexdigest() != name.split(".")[-2]:
            return None
        return pickle.loads(content)

    def _load_index(self) -> dict[Any, str]:
        """The names of files by signature and processor."""
        content = self._read(self._index_name) or b""
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            return {}
        *made_by, names = pickle.loads(content[_DIGEST:])
        if made_by != [self._version, self._source_stamp]:  # another Numba's types may not be readable
            return {}
        found: dict[Any, str] = pickle.loads(names)
        return found

    def _save_index(self, names: dict[Any, str]) -> None:
        content = pickle.dumps((self._version, self._source_stamp, _dumps(names)))
        self._write(self._index_name, hashlib.sha256(content).digest() + content)

    def _read(self, name: str) -> bytes | None:
        try:
            return Path(self._cache_path, name).read_bytes()
        except OSError:
            return None

    def _write(self, name: str, content: bytes) -> None:
        with self._open_for_write(str(Path(self._cache_path, name))) as file:
            file.write(content)
