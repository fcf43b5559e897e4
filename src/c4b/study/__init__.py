"""Simulation studies: settings, episodes, statistics, tables, figures, report."""

from c4b.study.engine.run import run
from c4b.study.results.results import Results
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from c4b.study.spec.study_file import load

__all__ = ["Method", "Results", "Setting", "Study", "load", "run"]
