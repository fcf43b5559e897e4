"""``benchmarks/compare.py`` on results made up here: no benchmark runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).parents[1] / "benchmarks" / "compare.py"


def write(path: Path, benchmark: str, rows: list[Any], date: str = "2025-01-01T00:00:00+00:00") -> Path:
    machine = {"commit": "abc", "date": date, "cpu": "made up", "cores": 2}
    result = {"benchmark": benchmark, "quick": False, "machine": machine, "rows": rows}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result))
    return path


def online(*ratios: float) -> list[Any]:
    return [{"what": f"row {n}", "K": 32, "ratio": ratio} for n, ratio in enumerate(ratios)]


def compare(before: Path, after: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-S", "-I", str(_SCRIPT), str(before), str(after), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_ratio_that_grew_by_more_than_the_threshold_is_flagged(tmp_path: Path) -> None:
    before = write(tmp_path / "a.json", "online", online(1.0, 2.0))
    after = write(tmp_path / "b.json", "online", online(1.04, 2.2))
    code, text = compare(before, after)
    flagged = [line for line in text.splitlines() if "WORSE" in line]
    assert code == 1
    assert len(flagged) == 1
    assert "row 1, K=32" in flagged[0]
    assert "+10.0%" in flagged[0]
    assert compare(before, after, "--threshold", "11")[0] == 0
    assert compare(after, before)[0] == 0


def test_where_higher_is_better_a_fall_is_flagged(tmp_path: Path) -> None:
    field = "share of the bare rate (target >= 0.5)"
    for name, benchmark, high, low in (
        ("study", "study", [{"what": "w", "times_faster": 100.0}], [{"what": "w", "times_faster": 90.0}]),
        ("nested", "service", [{"http": {"ratio": 0.6}}], [{"http": {"ratio": 0.5}}]),
        ("median", "deployment", [{"store": "s", field: {"median": 0.8, "10 %": 0.1}}],
         [{"store": "s", field: {"median": 0.7, "10 %": 0.1}}]),
    ):  # fmt: skip
        before = write(tmp_path / f"{name}-high.json", benchmark, high)
        after = write(tmp_path / f"{name}-low.json", benchmark, low)
        assert compare(before, after)[0] == 1
        assert compare(after, before)[0] == 0


def test_of_a_folder_the_newest_result_of_each_benchmark_counts(tmp_path: Path) -> None:
    write(tmp_path / "old" / "x.json", "online", online(1.0))
    write(tmp_path / "new" / "a.json", "online", online(1.0), "2025-03-01T00:00:00+00:00")
    write(tmp_path / "new" / "b.json", "online", online(9.0), "2025-02-01T00:00:00+00:00")
    write(tmp_path / "new" / "c.json", "study", [], "2025-02-01T00:00:00+00:00")
    code, text = compare(tmp_path / "old", tmp_path / "new")
    assert code == 0
    assert "study: only after" in text


def test_a_ratio_on_one_side_only_is_named(tmp_path: Path) -> None:
    before = write(tmp_path / "a.json", "online", online(1.0, 2.0))
    after = write(tmp_path / "b.json", "online", online(1.0))
    code, text = compare(before, after)
    assert code == 0
    assert "only before: row 1, K=32: ratio" in text
