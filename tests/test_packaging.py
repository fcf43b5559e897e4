"""What is shipped: the wheel holds everything and runs elsewhere; container and unit files are sound."""

from __future__ import annotations

import configparser
import importlib.metadata
import json
import os
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from contextlib import suppress
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from hatchling import build as hatchling
from packaging.specifiers import SpecifierSet

from c4b._compilation import compile_cache
from c4b.cli.main import app

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "packaging"
TOOLS = Path(sys.executable).parent
SAFELY: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # not in Python 3.11.2


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, as an index would do it."""
    folder = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        sdist = hatchling.build_sdist(str(folder))
        with tarfile.open(folder / sdist) as archive:
            archive.extractall(folder, **SAFELY)
        patch.chdir(folder / sdist.removesuffix(".tar.gz"))
        return folder / hatchling.build_wheel(str(folder))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_every_version_in_constraints_runs_on_the_oldest_python_that_is_allowed() -> None:
    """Debian 12 has Python 3.11.2, and pip there refuses a version that needs 3.11.5."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = f"{project['requires-python'].removeprefix('>=')}.0"
    refused = []
    for line in (ROOT / "constraints.txt").read_text().split():
        name, _, version = line.partition("==")
        with suppress(importlib.metadata.PackageNotFoundError):  # needed on another platform
            installed = importlib.metadata.metadata(name)
            needs = installed.get("Requires-Python") if installed["Version"] == version else None
            if needs is not None and oldest not in SpecifierSet(needs):
                refused.append(f"{name} needs Python {needs}")
    assert refused == []


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("c4b/")}
    files = (path for path in (ROOT / "src/c4b").rglob("*") if path.is_file())
    assert held == {
        path.relative_to(ROOT / "src").as_posix() for path in files if "__pycache__" not in path.parts
    }
    assert {
        "c4b/py.typed",
        "c4b/service/dashboard/index.html",
        "c4b/study/spec/studies/paper.toml",
    } <= held


@pytest.mark.slow
def test_the_wheel_runs_away_from_the_clone(wheel: Path, tmp_path: Path) -> None:
    """Only its requirements come from here; ``make package`` does it in an environment of its own."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    code = """
import sys
sys.path.insert(0, "installed")
import c4b
assert "installed" in c4b.__file__
policy = c4b.Policy(model=c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0), reserve=1.0)
print(policy.decide([[1.0, 0.1]], [1.0, 0.0]).action)
from c4b.cli.main import main
sys.argv = ["c4b", "--version"]
main()
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(compile_cache.FOLDER).parent)}
    ran = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "0\nreserve-c4b 0.1.0\n"


def test_metadata(metadata: Message) -> None:
    """Complete but for the licence, which the owner has to choose."""
    for field in ("Name", "Version", "Summary", "Keywords", "Author", "Requires-Python"):
        assert metadata[field], field
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).startswith("# Reserve-C4B")
    assert "Programming Language :: Python :: 3.14" in metadata.get_all("Classifier", [])
    assert {"study", "cluster", "deploy", "client", "service"} <= set(
        metadata.get_all("Provides-Extra", [])
    )


def commands() -> list[list[str]]:
    """Every call of ``c4b`` in the container and unit files."""
    docker = (SHIPPED / "Dockerfile").read_text()
    found = [json.loads(line) for line in re.findall(r"^CMD (\[.*\])$", docker, re.MULTILINE)]
    found += [shlex.split(line) for line in re.findall(r"^RUN (c4b .*)$", docker, re.MULTILINE)]
    compose = (SHIPPED / "compose.yaml").read_text()
    found.append(yaml.safe_load(compose)["services"]["c4b"]["command"])
    found += [shlex.split(line) for line in re.findall(r"--rm c4b (c4b .*)$", compose, re.MULTILINE)]
    unit = (SHIPPED / "c4b.service").read_text()
    return found + [shlex.split(line) for line in re.findall(r"^Exec\w+=(.*)$", unit, re.MULTILINE)]


def test_the_commands_in_these_files_exist() -> None:
    assert len(commands()) == 6
    for program, *words in commands():
        assert Path(program).name == "c4b"
        command, depth = typer.main.get_command(app), 0
        while hasattr(command, "commands"):
            command = command.commands[words[depth]]
            depth += 1
        command.make_context(words[depth - 1], words[depth:]).close()


def test_linters() -> None:
    rules = "{extends: default, rules: {line-length: {max: 120}, document-start: disable}}"
    for line in (
        [TOOLS / "hadolint", SHIPPED / "Dockerfile"],
        [TOOLS / "yamllint", "--strict", "-d", rules, SHIPPED / "compose.yaml", ROOT / "mkdocs.yml"],
    ):
        ran = subprocess.run(line, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    docker = (SHIPPED / "Dockerfile").read_text()
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = [
        word
        for line in re.findall(r"^COPY (?!--)(.*) \S+$", docker, re.MULTILINE)
        for word in line.split()
    ]
    assert set(copied) == let_in
    assert all((ROOT / name).exists() for name in copied)


def test_the_unit_file() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser documents it
    unit.read(SHIPPED / "c4b.service")
    assert unit["Service"]["DynamicUser"] == "yes"
    assert unit["Install"]["WantedBy"] == "multi-user.target"
    judge = shutil.which("systemd-analyze")
    if judge is not None:
        said = subprocess.run(
            [judge, "verify", SHIPPED / "c4b.service"], capture_output=True, text=True, check=False
        ).stderr.splitlines()
        assert [line for line in said if "c4b.service" in line and "is not executable" not in line] == []


CLIPPED = "from c4b.evidence.bounds import clipped; clipped = clipped.from_python; clipped(-1.0, 1.0, 2)"


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="there is no other baseline")
def test_kernels_that_a_wheel_carries_run_where_they_fit_and_nowhere_else(
    wheel: Path, tmp_path: Path
) -> None:
    script = runpy.run_path(str(SHIPPED / "wheel_with_kernels.py"))
    made = script["carrying"](Path(shutil.copy(wheel, tmp_path)), CLIPPED)
    site = tmp_path / "site"
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(made)]
    subprocess.run([sys.executable, "-m", *install], check=True)

    def loaded(cache: str) -> str:
        """How often a process that has nothing else compiled uses what the wheel carries."""
        environment = os.environ | {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(tmp_path / cache)}
        command = [sys.executable, "-c", f"{CLIPPED}; print(len(clipped.stats.cache_hits))"]
        ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return ran.stdout.strip()

    assert loaded("first") == "1"
    assert not list((tmp_path / "first").rglob("*.nbc"))
    target = site / "c4b/_compiled" / compile_cache.TARGET
    fitting = target.read_text()
    target.write_text(fitting.replace("+avx,", "+avx,+of-another-processor,"))
    assert loaded("second") == "0"
    target.write_text(fitting)
    with open(site / "c4b/errors.py", "a") as source:
        source.write("\n")
    assert loaded("third") == "0"


def test_every_requirement_says_the_oldest_version_that_works(tmp_path: Path) -> None:
    lowest = runpy.run_path(str(SHIPPED / "lowest_versions.py"))["lowest_versions"]
    found = lowest(ROOT / "pyproject.toml")
    assert "numpy==2.0" in found
    assert not any("reserve-c4b" in each or "pytest" in each for each in found)
    careless = tmp_path / "pyproject.toml"
    careless.write_text(
        (ROOT / "pyproject.toml").read_text().replace('"numpy>=2.0"', '"numpy"'), encoding="utf-8"
    )
    with pytest.raises(ValueError, match="numpy: must say"):
        lowest(careless)
