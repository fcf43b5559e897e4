"""docs/field.md: its snippets run, and its table says what the policies say of themselves."""

import re
from pathlib import Path

import pytest

import c4b

PAGE = (Path(__file__).parents[2] / "docs" / "field.md").read_text(encoding="utf-8")
ROWS = {
    name: row
    for row in re.findall(r"^\| `.*$", PAGE.split("## ")[0], re.MULTILINE)
    for name in re.findall(r"`([\w+-]+)`", row.split("|")[1])
}


def test_every_snippet_runs() -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(snippet, {})


@pytest.mark.parametrize("name", [n for n in ROWS if n in c4b.policies.names()])
def test_the_table_says_what_is_promised_and_needed(name: str) -> None:
    spec = c4b.policies.get(name)
    cells = [cell.strip() for cell in ROWS[name].split("|")]
    assert cells[3].startswith(str(spec.promise))
    assert ("mean" in cells[4] and "told" in cells[4]) >= ("baseline_mean" in spec.needs)
    assert ("`horizon`" in cells[4]) == ("horizon" in spec.needs)
    assert ("`seed`" in cells[4]) == ("seed" in spec.needs)
    assert ("one-hot" in cells[4]) >= ("one-hot features" in spec.needs)


def test_no_system_of_the_field_is_missing() -> None:
    ours = {"separate", "contrast", "revalue", "revalue-f", "linucb", "checkpoints", "clicks"}
    assert {*c4b.policies.names()} - ours - {*ROWS} == set()
