"""LaTeX that the paper can input: same files, same columns, same macro names."""

import re

import pytest

from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.report import latex_tables
from c4b.study.results.results import Results
from c4b.study.spec.plan import Method
from support.small_studies import small_study

MACROS = [
    "SepFallback", "ContrastFallback", "RefreshFallback", "ContrastGain", "ContrastGainLow",
    "ContrastGainHigh", "BaselineContrastFallback", "BaselineRefreshFallback",
    "BaselineRefreshReward", "BaselineRevalueFilterReward", "RefreshVsRevalueGain",
    "RefreshVsRevalueLow", "RefreshVsRevalueHigh", "LinBaselineViolations", "FailureUpper",
]  # fmt: skip
DIGITS = {"Fallback": 1, "Violations": 1, "Upper": 2, "Gain": 4, "Low": 4, "High": 4, "Reward": 4}


def parsed(text: str) -> tuple[str, list[list[str]]]:
    """Column letters and the cells of every row; fails on a table LaTeX would not take."""
    found = re.fullmatch(r"\\begin\{tabular\}\{([lrc]+)\}\n(.*)\\end\{tabular\}\n", text, re.DOTALL)
    assert found, text
    columns, body = found[1], found[2]
    lines = body.splitlines()
    assert (lines[0], lines[2], lines[-1]) == (r"\toprule", r"\midrule", r"\bottomrule")
    rows = []
    for line in lines[1:-1]:
        if line == r"\midrule":
            continue
        assert line.endswith(r" \\"), line
        cells = re.split(r"(?<!\\) & ", line.removesuffix(r" \\"))
        spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", line)]
        assert sum(spans) + len(cells) - len(spans) == len(columns), line
        assert line.count("{") - line.count(r"\{") == line.count("}") - line.count(r"\}"), line
        rows.append(cells)
    return columns, rows


def test_the_papers_file_names(paper: Results) -> None:
    names = {path.name for path in (paper.folder / "tables").iterdir()}
    assert names == {"central.tex", "zero_reserve.tex", "results_macros.tex", "overview.tex"}


def test_central(paper: Results) -> None:
    columns, rows = parsed((paper.folder / "tables" / "central.tex").read_text())
    assert columns == "lrr"
    assert rows[0] == ["Method", "Diverse history", "Baseline-only"]
    names = ["Separate", "Contrast", r"\textbf{Refresh}", "Revalue", "Revalue-F", "LinUCB"]
    assert [row[0] for row in rows[1:]] == names
    for row in rows[1:]:
        for cell in row[1:]:
            assert re.fullmatch(r"\d\.\d{4} / \d{1,3}\.\d", cell)
    setting = paper.find(history="baseline", rho=0.15, sigma=0.3, reserve=0.0)
    ratio = paper.values(setting, "refresh", Metric.REWARD_RATIO).mean()
    fallback = 100.0 * paper.values(setting, "refresh", Metric.FALLBACK).mean()
    assert rows[3][2] == f"{ratio:.4f} / {fallback:.1f}"


def test_zero_reserve(paper: Results) -> None:
    columns, rows = parsed((paper.folder / "tables" / "zero_reserve.tex").read_text())
    assert columns == "rrrrrr"
    assert rows[0] == [r"$\rho$", r"$\sigma$", "C", "C+", "R-F", "U"]
    assert rows[1] == [r"\multicolumn{6}{l}{\emph{Diverse history}}"]
    assert rows[8] == [r"\multicolumn{6}{l}{\emph{Baseline-only history}}"]
    grid = [[rho, sigma] for rho in ("0.15", "0.4", "0.8") for sigma in ("0.1", "0.3")]
    assert [row[:2] for row in rows[2:8]] == [row[:2] for row in rows[9:]] == grid
    for row in rows[2:8] + rows[9:]:
        assert all(re.fullmatch(r"\d\.\d{3}", cell) for cell in row[2:])
    setting = paper.find(history="diverse", rho=0.4, sigma=0.3, reserve=0.0)
    assert rows[5][4] == f"{paper.values(setting, 'revalue-f', Metric.REWARD_RATIO).mean():.3f}"


def test_macros(paper: Results) -> None:
    lines = (paper.folder / "tables" / "results_macros.tex").read_text().splitlines()
    found = [re.fullmatch(r"\\newcommand\{\\([A-Za-z]+)\}\{(-?\d+\.(\d+))\}", line) for line in lines]
    assert [m and m[1] for m in found] == MACROS
    for m in found:
        assert m is not None
        digits = next(n for end, n in DIGITS.items() if m[1].endswith(end))
        assert len(m[3]) == digits, m[0]
    assert found[-1] is not None
    assert found[-1][2] == "1.16"


def test_the_overview_of_any_study_is_a_table(paper: Results) -> None:
    columns, rows = parsed((paper.folder / "tables" / "overview.tex").read_text())
    assert columns == "llllrrrrrr"
    assert len(rows) == 1 + 36


@pytest.mark.parametrize("label", ["a_b & c", "100 % {x}", r"\input{x}", "$m^2$ #1 ~"])
def test_a_label_cannot_break_the_table(tmp_path_factory: pytest.TempPathFactory, label: str) -> None:
    study = small_study(("refresh",), episodes=2).with_(methods=(Method(label, "refresh"),))
    found = run(study, tmp_path_factory.mktemp("label"))
    columns, rows = parsed(latex_tables.overview(found))
    assert columns == "lr"
    bare = re.sub(r"\\(textbackslash|textasciitilde|textasciicircum)\{\}|\\[&%$#_{}]", "", rows[0][1])
    assert not set(bare) & set("\\&%$#_{}~^")
