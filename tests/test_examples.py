"""Every program in ``examples/`` runs as it is, without a warning, and says what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "my_gate.py": ["'the bank never exceeds the truth': 'passed'", "reserve-c4b+", "\n0 replayed\n"],
    "my_set.py": [],
    "square_cb_network.py": ["guarantee conditional on declared regret", "regret 17."],
    "square_cb_river.py": ["guarantee conditional on declared regret", "river"],
    "monotone_slates.py": [" of 400 rounds played; bank "],
}
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    if path.name == "square_cb_river.py":
        pytest.importorskip("river", reason="the extra dev has it")
    run = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    for text in SAYS[path.name]:
        assert text in run.stdout
    assert len(path.read_text().splitlines()) < 80
