"""CITATION.cff names this package and this version, with the fields that its format requires."""

from importlib.metadata import version
from pathlib import Path

import yaml

_ROOT = Path(__file__).parents[1]


def test_citation_file() -> None:
    citation = yaml.safe_load((_ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["title"] == "Reserve-C4B"
    assert citation["version"] == version("reserve-c4b")
    assert citation["message"]
    for work in (citation, *citation["references"]):
        assert work["title"]
        assert all(author["name"] for author in work["authors"])
    (paper,) = citation["references"]
    assert paper["title"] in " ".join((_ROOT / "README.md").read_text().split())
