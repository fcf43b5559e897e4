"""The price of safety: hand-checked numbers, the target of the ``beyond`` study, and what it leaves."""

import numpy as np
import pytest

from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.report import latex_tables
from c4b.study.report.write_report import write_report
from c4b.study.results import price_of_safety as price
from c4b.study.results.results import Results
from c4b.study.spec import study_file as files
from c4b.study.spec.plan import Method
from support.small_studies import Call, small_study


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> Results:
    found = run(files.load("beyond").with_(episodes=48), tmp_path_factory.mktemp("beyond"))
    write_report(found)
    return found


def test_the_columns_that_were_asked_for(beyond: Results) -> None:
    labels = [method.label for method in beyond.study.methods]
    assert labels == [
        "linucb", "linucb, late", "refresh", "mixture", "constrained", "checkpoints", "unbiased",
        "reserve-c4b+",
    ]  # fmt: skip
    assert len(beyond.study.settings) == 12
    assert {setting.reserve for setting in beyond.study.settings} == {0.0}


def test_numbers_are_the_paired_differences(beyond: Results) -> None:
    s = beyond.find(history="baseline", rho=0.8, sigma=0.1)
    mine = next(p for p in price.prices(beyond) if p.setting == s and p.method == "refresh")
    rewards = [
        beyond.values(s, name, Metric.REWARD_RATIO) for name in ("refresh", "linucb", "linucb, late")
    ]
    assert mine.gain.mean == pytest.approx(float(np.mean(rewards[0] - rewards[1])))
    assert mine.gain.se == pytest.approx(float(np.std(rewards[0] - rewards[1], ddof=1) / np.sqrt(48)))
    assert mine.gain_late is not None
    assert mine.gain_late.mean == pytest.approx(float(np.mean(rewards[0] - rewards[2])))
    assert mine.floor == 17 / 200
    assert mine.times_floor == pytest.approx(
        beyond.values(s, "refresh", Metric.FALLBACK).mean() * 200 / 17
    )


def test_the_target_of_the_study(beyond: Results) -> None:
    """Its own figures are from 256 episodes; at 48 the same holds with room for wider intervals. One of
    the six settings is at 1.50 times the floor, 1.48 to 1.51 at other seeds and with any order of ties.
    """
    tallies = {tally.method: tally for tally in price.tallies(beyond)}
    best = tallies["reserve-c4b+"]
    assert best.not_below >= 9
    assert best.not_below_late == 12
    assert sum(times <= 1.55 for times in best.times_floor) >= 5
    assert len(best.times_floor) == 6
    assert tallies["refresh"].not_below < 9  # the paper's policy does pay
    assert all(tally.violations == 0 for tally in tallies.values())
    for found in price.prices(beyond):
        setting = beyond.study.settings[found.setting]
        if found.method == "reserve-c4b+" and setting.history == "diverse":
            assert found.fallback <= (0.005 if setting.sigma == 0.1 else 0.015)


def test_what_it_leaves(beyond: Results) -> None:
    text = (beyond.folder / "tables" / "price.tex").read_text()
    assert text == latex_tables.price_of_safety(beyond)
    assert text.count(r"\\") == 1 + 12 * 8
    assert "±" not in text
    for kind in ("png", "pdf"):
        assert (beyond.folder / "figures" / f"price_of_safety.{kind}").stat().st_size > 10_000
    page = (beyond.folder / "report.html").read_text(encoding="utf-8")
    assert "The price of safety" in page
    assert "reserve-c4b+: not below linucb in" in page


def test_the_command_ends_with_it(
    beyond: Results, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Call(monkeypatch, capsys)("study", "report", beyond.folder)
    assert said.code == 0
    lines = [line for line in said.out.splitlines() if ": not below linucb in " in line]
    assert [line.split(":")[0] for line in lines] == [tally.method for tally in price.tallies(beyond)]
    assert "x floor" in said.out


def test_studies_without_the_yardstick_or_without_a_gate_have_no_price(
    paper: Results, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert not price.is_priced(paper)  # its tables are the paper's own
    for names in (("refresh",), ("linucb",)):
        found = run(small_study(names, episodes=2), tmp_path_factory.mktemp("none"))
        assert not price.is_priced(found)


def test_one_yardstick_is_enough(tmp_path_factory: pytest.TempPathFactory) -> None:
    methods = (Method("linucb", "linucb"), Method("mine", "refresh"))
    found = run(small_study(episodes=4).with_(methods=methods), tmp_path_factory.mktemp("one"))
    assert price.is_priced(found)
    (tally,) = price.tallies(found)
    assert tally.not_below_late is None
    assert [row[-1] for row in price.table_rows(found)] == ["-"] * 4
    heading, rows = price.compact_table(found)
    assert heading == [name for name in price.HEADING if name != "- linucb, late"]
    assert [row for row in rows if len(row) != len(heading)] == []
    assert "late" not in price.legend(found)
    write_report(found)
    assert (found.folder / "figures" / "price_of_safety.png").exists()


def test_a_range_has_two_ends() -> None:
    one = price.Tally("mine", 2, 1, None, [24.011], 0)
    assert "; fallback 24.01 x the floor; " in price.sentence(one)
    assert "; fallback 1.50 to 24.01 x the floor; " in price.sentence(
        one._replace(times_floor=[24.011, 1.5])
    )


def test_the_words_of_the_table_are_explained(beyond: Results) -> None:
    assert price.compact_table(beyond)[0] == list(price.HEADING)
    assert price.legend(beyond) == (
        "Yardsticks: linucb plays without a gate, and is not safe; 'linucb, late' is the same after the "
        "forced baseline rounds. Floor: the fallback that no gate certified over the whole set can avoid."
    )
