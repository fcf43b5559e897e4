"""Tables on terminals of any width: nothing beyond the edge, and every number whole."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from c4b.cli.console import console_tables, output
from support.small_studies import TOML, Call, study_file

WIDTHS = (60, 80, 100, 200)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")

SETTINGS = [
    f"history={history}, rho={rho}, sigma={sigma}"
    for history in ("diverse", "baseline")
    for rho in (0.15, 0.4)
    for sigma in (0.1, 0.3)
]


def cells(seed: int, form: str, count: int) -> list[str]:
    """Different in every cell, so that a number cut anywhere is missed."""
    return [form.format(1.0 + (seed * 97 + n * 13) / 9973, (seed * 31 + n) / 997) for n in range(count)]


OVERVIEW = (
    [
        "setting",
        "linucb",
        "linucb, late",
        "refresh",
        "mixture",
        "constrained",
        "checkpoints",
        "reserve-c4b+",
    ],
    [[setting, *cells(n, "{:.4f} / {:.1f}", 7)] for n, setting in enumerate(SETTINGS)],
    1,
)
PRICE = (
    ["setting", "reward ratio", "fallback %", "x floor", "violations", "- linucb", "- linucb, late"],
    [[setting, *cells(n, "{:.4f} ± {:.4f}", 6)] for n, setting in enumerate(SETTINGS)],
    1,
)
COMPARE = (
    ["setting", "method", "reward ratio", "fallback (percentage points)"],
    [
        [setting, "refresh, mixture", *cells(n, "{0:+.4f} [-{1:.4f}, {0:+.5f}]", 2)]
        for n, setting in enumerate(SETTINGS)
    ],
    2,
)


def shown(
    table: tuple[list[str], list[list[str]], int], width: int, monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.setattr(output.console, "width", width)
    with output.console.capture() as said:
        console_tables.show(output.console, *table)
    return said.get()


@pytest.mark.parametrize("table", [OVERVIEW, PRICE, COMPARE], ids=["overview", "price", "compare"])
@pytest.mark.parametrize("width", [45, *WIDTHS])
def test_every_number_is_whole_at_every_width(
    table: tuple[list[str], list[list[str]], int], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = shown(table, width, monkeypatch)
    assert max(map(len, narrow.splitlines())) <= width
    heading, rows, left = table
    shown_numbers = Counter(NUMBER.findall(narrow))
    assert Counter(NUMBER.findall(" ".join(cell for row in rows for cell in row))) <= shown_numbers
    for word in " ".join(heading).split():
        assert word in narrow.replace(":", "").split()
    if width >= 80:  # not only its numbers: each cell stays on one line
        assert all(cell in narrow for row in rows for cell in row[left:])


def test_labels_are_repeated_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = shown(OVERVIEW, 80, monkeypatch)
    assert narrow.count("setting") == narrow.count("┏") > 1
    for setting in SETTINGS:
        assert narrow.count(setting) == narrow.count("┏")


def test_a_table_that_fits_is_one_with_nothing_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = shown(OVERVIEW, 200, monkeypatch)
    assert len(wide.splitlines()) == 3 + len(SETTINGS) + 1


def test_the_labels_wrap_where_that_saves_a_second_table(monkeypatch: pytest.MonkeyPatch) -> None:
    heading, rows, left = OVERVIEW
    narrow = shown((heading[:5], [row[:5] for row in rows[:2]], left), 90, monkeypatch)
    assert narrow.count("┏") == 1
    assert "history=diverse," in narrow
    assert SETTINGS[0] not in narrow


def test_rows_become_lists_where_no_column_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = shown(COMPARE, 45, monkeypatch)
    assert "┏" not in narrow
    assert narrow.count("  reward ratio: ") == len(SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_commands_on_a_terminal(
    c4b: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """What run, report and compare print in a pipe they print on a terminal, too, number by number."""
    first, second = tmp_path / "a", tmp_path / "b"
    c4b("study", "run", study_file(tmp_path), "--out", first)
    other = study_file(tmp_path, TOML.replace("sigma = 0.2", "sigma = 0.1"), "other.toml")
    c4b("study", "run", other, "--out", second)
    calls = [
        ("run", tmp_path / "study.toml", "--out", first),
        ("report", first),
        ("compare", first, second),
    ]
    wide = [c4b("study", *call).out for call in calls]
    monkeypatch.setattr(output.console, "width", width)
    for call, before in zip(calls, wide, strict=True):
        after = c4b("study", *call).out
        drawn = [line for line in after.splitlines() if line.startswith(("│", "┃", "┏"))]
        assert max(map(len, drawn), default=0) <= width
        assert Counter(NUMBER.findall(before)) <= Counter(NUMBER.findall(after))


def test_policies_keep_their_words_whole(c4b: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    words = c4b("policies").out.split()
    monkeypatch.setattr(output.console, "width", 80)
    assert set(re.findall(r"[\w+-]{3,}", " ".join(words))) <= set(
        re.findall(r"[\w+-]{3,}", c4b("policies").out)
    )


def test_an_order_is_answered_in_a_sentence(
    c4b: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    c4b("deploy", "create", store, "shop", "--dim", 2, "--noise", 0.1, "--norm-bound", 1)
    piped = c4b("deploy", "freeze", store, "shop", "checkout is down", "--by", "ben")
    assert json.loads(piped.out)["mode"] == "frozen"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    again = c4b("deploy", "freeze", store, "shop", "still down", "--by", "ann").out
    assert " ".join(again.split()) == (
        "shop is frozen (freeze by ben: checkout is down). It was so before: the order changed nothing, "
        "and its reason was not recorded"
    )
    said = c4b("deploy", "ramp", store, "shop", "0.5", "slowly", "--by", "ann").out
    assert "ramp by ann: slowly)" in said
    assert "It was so before" not in said
    assert json.loads(c4b("deploy", "thaw", store, "shop", "up again", "--json").out)["mode"] == "ramp"
