"""The smallest and the largest studies get their tables, figures and page, too."""

from dataclasses import replace
from pathlib import Path

import pytest

from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.report.figures import MOST_LINES
from c4b.study.report.write_report import write_report
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from support.small_studies import small_study


@pytest.mark.parametrize("history", ["diverse", "baseline", "candidates"])
@pytest.mark.parametrize("generator", ["sphere", "gaussian"])
def test_one_of_everything(tmp_path: Path, history: str, generator: str) -> None:
    """One feature, one candidate, one round, no history: every candidate equals the next."""
    setting = Setting(
        history=history, history_size=0, generator=generator, count=1, rounds=1, theta=(1.0,),
        baseline=(1.0,),
    )  # fmt: skip
    methods = tuple(Method(name, name) for name in ("refresh", "linucb"))
    found = run(Study("one", "one", methods, (setting,), (), 2, 0), tmp_path)
    assert found.values(0, "linucb", Metric.REWARD_RATIO).tolist() == [1.0, 1.0]
    assert write_report(found).is_file()


@pytest.mark.slow
def test_more_settings_than_a_picture_holds(tmp_path: Path) -> None:
    base = small_study(("linucb",), episodes=2, rounds=2).settings[0]
    count = MOST_LINES + 1
    settings = tuple(replace(base, sigma=0.1 + 0.001 * n) for n in range(count))
    study = Study("wide", "wide", (Method("linucb", "linucb"),), settings, ("sigma",), 2, 0)
    page = write_report(run(study, tmp_path)).read_text()
    assert page.count("<td>sigma=") == count


@pytest.mark.slow
def test_more_methods_than_line_styles(tmp_path: Path) -> None:
    methods = tuple(Method(f"method number {n}", "refresh") for n in range(11))
    study = small_study(("linucb",), episodes=2).with_(methods=methods)
    page = write_report(run(study, tmp_path)).read_text()
    assert "method number 10" in page


def test_settings_of_different_length(tmp_path: Path) -> None:
    base = small_study(("refresh",), episodes=3).settings[0]
    settings = tuple(replace(base, rounds=rounds) for rounds in (4, 9))
    study = Study("t", "t", (Method("refresh", "refresh"),), settings, ("rounds",), 3, 0)
    found = run(study, tmp_path)
    assert found.trajectories["round"].to_list() == [*range(1, 5), *range(1, 10)]
    assert write_report(found).is_file()
    grown = run(study.with_(episodes=5), tmp_path)
    whole = run(study.with_(episodes=5), tmp_path / "whole")
    assert grown.trajectories.equals(whole.trajectories)
