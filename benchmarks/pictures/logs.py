"""Draws docs/images/logs.png: what `c4b diagnose --figure` shows of the page's log.

python benchmarks/pictures/logs.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from drawing import IMAGES

from c4b.cli.main import main as c4b


def main() -> None:
    draw, n = np.random.default_rng(1), 6000
    age = draw.uniform(20, 60, n)
    page = draw.choice(["home", "offer", "news"], n)
    rate = np.select([page == "home", page == "offer"], [0.30, 0.30 + 0.01 * (age - 40)], 0.25)
    clicks = (draw.random(n) < rate).astype(float)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        pl.DataFrame({"page": page, "age": age, "click": clicks}).write_parquet(log)
        columns = ["--action", "page", "--reward", "click", "--context", "age"]
        sys.argv = ["c4b", "diagnose", str(log), *columns, "--figure", str(IMAGES / "logs.png")]
        c4b()


if __name__ == "__main__":
    main()
