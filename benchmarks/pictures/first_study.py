"""Draws docs/images/first_study.png: a figure of the example study that `c4b study init` writes.

python benchmarks/pictures/first_study.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from drawing import save

from c4b.study import load, run
from c4b.study.report.figures import cumulative_fallback
from c4b.study.spec.study_file import example


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(example())
        found = run(load(path), Path(folder) / "results")
        figure = cumulative_fallback(found, found.find(history="baseline", reserve=0.0))
    figure.set_size_inches(7.5, 4.2)
    save(figure, "first_study")


if __name__ == "__main__":
    main()
