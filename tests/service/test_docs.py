"""docs/operating.md and the tutorial on the service: every snippet runs, every name exists."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from c4b.service.monitoring import grafana
from c4b.service.routing import problems, routes
from support.service_process import Service, serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operating.md").read_text()
TUTORIAL = (ROOT / "docs/tutorial/first-service.md").read_text()


def snippets(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def shell(code: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", code],
        env={**os.environ, "PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("docs")
    with serving(f"sqlite:///{folder}/shop.db", folder / "log") as service:
        yield service, folder


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls the service with curl")
def test_the_page_in_its_order(running: tuple[Service, Path]) -> None:
    """The service is started by the fixture, with the command that the page gives."""
    service, folder = running
    start, tokens, use, backup, upgrade = snippets(PAGE, "sh")
    assert start.startswith("c4b serve --store sqlite:///shop.db")
    said = shell(use.replace("localhost:8000", f"127.0.0.1:{service.port}"), folder)
    assert '"id":"homepage-1-' in said
    assert '"outcome":"observed"' in said
    assert "homepage: clean" in shell(backup, folder)
    assert '"after": 2' in shell(upgrade, folder)
    created = shell(tokens, folder)
    assert len(re.findall(r"^c4b_\w+_\S+$", created, re.MULTILINE)) == 3
    assert "web shop" in created


def test_the_tutorial(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = snippets(TUTORIAL, "python")
    exec(compile(code.replace("http://127.0.0.1:8000", service.url), "snippet", "exec"), {})
    assert "bank" in capsys.readouterr().out


def test_every_status_is_explained() -> None:
    table = PAGE.split("| status | meaning |")[1].split("\n\n")[0]
    cells = re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE)
    explained = {int(code) for cell in cells for code in cell.split(",")}
    assert explained == {int(code) for code in routes.PROBLEMS} | set(problems.STATUS.values()) | {
        405,
        431,
    }


def test_names_on_the_page_exist() -> None:
    here = Path(__file__).parent
    for name in re.findall(r"(test_\w+\.py)", PAGE):
        assert (here / name).exists(), name
    everything = "".join(path.read_text() for path in here.glob("test_*.py"))
    for name in re.findall(r"::(test_\w+)", PAGE):
        assert f"def {name}(" in everything, name
    known, monitored = str(grafana.dashboard()), PAGE.split("## Monitor it")[1]
    for metric in set(re.findall(r"\bc4b_(?!\w*token)[a-z]+_\w+|\bc4b_(?:bank|alarm)\b", monitored)):
        assert metric in known, metric
