"""Every snippet of the deployment pages runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from c4b.journal import backend_registry

pytestmark = pytest.mark.slow  # commands as processes of their own

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs/tutorial/first-deployment.md", ROOT / "docs/deployment.md"]
SNIPPETS = [
    pytest.param(language, code, id=f"{page.name}-{n}")
    for page in PAGES
    for n, (language, code) in enumerate(
        re.findall(r"```(python|sh)\n(.*?)```", page.read_text(), re.DOTALL)
    )
    if "Deployment" in code or "c4b deploy" in code
]


@pytest.mark.parametrize(("language", "code"), SNIPPETS)
def test_snippet(language: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if language == "python":
        known = dict(backend_registry._factories)  # a snippet may register another one
        monkeypatch.setattr(backend_registry, "_factories", known)
        exec(compile(code, "snippet", "exec"), {})
        return
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", code],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "banner: clean" in done.stdout
    assert (tmp_path / "banner.parquet").stat().st_size > 0


def test_the_tests_that_the_page_names_exist() -> None:
    page = (ROOT / "docs/deployment.md").read_text()
    folders = (ROOT / "tests/deployment", ROOT / "tests/journal")
    everything = "".join(path.read_text() for folder in folders for path in folder.glob("test_*.py"))
    for name in re.findall(r"::(test_\w+)", page):
        assert f"def {name}(" in everything
