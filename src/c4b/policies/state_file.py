"""A policy on disk: one .npz archive, no pickle, a version, a digest, written all or not at all."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from c4b._whole_files import written_whole
from c4b.errors import CorruptState, NewerState, StateFileError, UnknownName
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.registry import PolicySpec
from c4b.policies.gate import Arrays
from c4b.policies.gate_run import GateRun

VERSION = 1
_HEADER = "header"
_STRAY = "allow_pickle"
"""An array in files of early versions, where NumPy was older than 2.2 and did not know that option."""
OPTIONAL_TERMS = ("baseline_floor", "horizon", "seed")
"""Terms that are written only if they were given."""


def header(spec: PolicySpec, run: GateRun, absorb: str, token: str) -> dict[str, Any]:
    """Everything about a gate in use that is not an array, as plain data."""
    terms = run.gate.terms
    # in order, open outcomes tell
    latest = {} if run.outcomes.in_order else {"latest": run.outcomes.latest}
    return {
        **registry.recorded(spec),
        "model": fields(terms.model),
        "settings": {
            "alpha": terms.alpha,
            "reserve": terms.reserve,
            "baseline_nonnegative": terms.baseline_nonnegative,
            "absorb": absorb,
            **{key: value for key in OPTIONAL_TERMS if (value := getattr(terms, key)) is not None},
        },
        "token": token,
        "rounds": run.rounds,
        "next": run.outcomes.next,
        **latest,
    }


def fields(configuration: Any) -> dict[str, Any]:
    """A frozen configuration as the keyword arguments that rebuild it, in plain JSON."""
    plain = dataclasses.asdict(configuration)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Replace ``path`` only once the new content is safely on disk."""
    header = {
        "format": "c4b-policy",
        "version": VERSION,
        **header,
        "digest": _digest(header, arrays),
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    content: dict[str, Any] = {_HEADER: text, **arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    with written_whole(target, durably=True) as draft:
        draft.write_bytes(buffer.getvalue())


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays, checked; FileNotFoundError when there is no such file."""
    content = Path(path).read_bytes()
    with corrupt_if_fails(path):
        if not content.startswith(b"PK"):
            raise ValueError("it is no zip archive")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files if key != _STRAY}
        header = json.loads(arrays.pop(_HEADER).tobytes())
        if header["format"] != "c4b-policy":
            raise ValueError(f"format is {header['format']!r}")
        version = int(header["version"])
        if version > VERSION:
            raise NewerState(
                f"{path}: written in format {version}, this package reads up to {VERSION}; "
                "upgrade reserve-c4b"
            )
        content_header = {k: v for k, v in header.items() if k not in ("format", "version", "digest")}
        if header["digest"] != _digest(content_header, arrays):
            raise ValueError("the digest does not match the content")
    return content_header, arrays


@contextmanager
def corrupt_if_fails(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever else goes wrong in reading is the file's fault; say so by type and name."""
    try:
        yield
    except StateFileError:
        raise
    except UnknownName as error:
        raise StateFileError(
            f"{path}: its policy or confidence set is not installed here ({error}); install the package "
            "that offers it, or import the module that registers it"
        ) from error
    except Exception as error:  # zip and npy readers raise a dozen unrelated types
        raise CorruptState(
            f"{path}: damaged, or not a saved policy ({error}); restore it from a copy"
        ) from error


def _digest(header: dict[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for key in sorted(arrays):
        array = arrays[key]
        if array.dtype.hasobject:
            raise TypeError(f"{key} holds objects, which no state file can")
        digest.update(f"{key} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
