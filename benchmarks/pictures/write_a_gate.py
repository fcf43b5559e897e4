"""Draws docs/images/write_a_gate.png: the gate of examples/my_gate.py beside two others, in simulation.

python benchmarks/pictures/write_a_gate.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from drawing import BENCHMARKS, save

from c4b.study import Method, Setting, Study, run
from c4b.study.report.figures import cumulative_fallback

sys.path.insert(0, str(BENCHMARKS.parent / "examples"))
import my_gate  # noqa: F401 (registers the gate)


def main() -> None:
    methods = tuple(Method(name, name) for name in ("worst-case", "refresh", "reserve-c4b+"))
    setting = Setting(history="baseline", rho=0.4, sigma=0.3, reserve=10.0)
    study = Study("mine", "Mine", methods, (setting,), (), episodes=64, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        figure = cumulative_fallback(run(study, Path(folder)), 0)
    figure.axes[0].set_title("A reserve of 10, a history of the incumbent only", fontsize=10)
    figure.set_size_inches(7.5, 4.2)
    save(figure, "write_a_gate")


if __name__ == "__main__":
    main()
