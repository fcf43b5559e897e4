"""Progress: the message while kernels compile, the estimate of the time left. Closed streams."""

import io
import shlex
import subprocess
import sys
import time

import pytest
from rich.console import Console
from rich.progress import Progress

from c4b.cli.console.output import COMPILING, ProgressBar, ProgressLines


class Clock:
    """``time.monotonic`` moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def test_time_left_is_told_from_the_first_finished_chunk_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ninety seconds of compiling, then ten episodes in ten seconds."""
    clock, lines = Clock(monkeypatch), ProgressLines("mine", compiling=True)
    for now, done in ((100.0, 0), (190.0, 10), (200.0, 20), (205.0, 25), (220.0, 40)):
        clock.now = now
        lines(done, 40)
    assert capsys.readouterr().err.splitlines() == [
        f"mine: 0/40 episodes ({COMPILING})",
        "mine: 10/40 episodes",
        "mine: 20/40 episodes, about 20 s left",
        "mine: 40/40 episodes",
    ]


def test_nothing_is_said_of_compiling_where_nothing_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLines("mine", compiling=False)(0, 40)
    ProgressLines("mine", compiling=True)(40, 40)
    assert capsys.readouterr().err == "mine: 0/40 episodes\nmine: 40/40 episodes\n"


def test_the_bar_says_so_until_the_first_chunk_and_counts_no_earlier_run() -> None:
    clock = [100.0]
    bar = Progress(console=Console(file=io.StringIO()), get_time=lambda: clock[0])
    report = ProgressBar(bar, "mine", compiling=True)
    report(1000, 2000)
    (task,) = bar.tasks
    assert (task.description, task.completed) == (f"mine ({COMPILING})", 1000)
    for now, done in ((120.0, 1010), (121.0, 1020), (122.0, 1030)):
        clock[0] = now
        report(done, 2000)
        assert task.description == "mine"
    assert task.speed == 10.0


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full"])
def test_closed_and_full_streams(closed: str) -> None:
    """A command runs, and what it starts finds streams, too."""
    program = (
        "from c4b.cli.main import app; import subprocess, sys; "
        "from c4b.service.monitoring.request_log import print_notice; print_notice('starting'); "
        "subprocess.run([sys.executable, '-c', 'import os; os.fstat(1), os.fstat(2)'], check=True); "
        "app(['policies'])"
    )
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode == 0 and "Error" not in done.stderr) or "full" in closed
    assert ("reserve-c4b+" in done.stdout) == (not closed.startswith(">"))
