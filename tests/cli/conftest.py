import pytest

from support.small_studies import Call


@pytest.fixture
def c4b(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command, called in this process."""
    return Call(monkeypatch, capsys)
