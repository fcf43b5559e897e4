"""Options of ``c4b serve``: a mistake is one line that names the option, before anything is started."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from c4b.service.serving.server import stoppable, token_command
from support.service_process import C4B, free_port, serving
from support.small_studies import Call


@pytest.fixture
def c4b(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(monkeypatch, capsys)


def failed(c4b: Call, *arguments: object) -> str:
    c4b(*arguments)
    assert (c4b.code, c4b.out) == (2, "")
    assert c4b.err.count("\n") == 1
    return c4b.err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--timeout", "0", "--timeout = 0.0: must be a positive number of seconds"),
        ("--timeout", "nan", "--timeout = nan: must be a positive number of seconds"),
        ("--candidates", "0", "--candidates = 0: must be a whole number of at least 1"),
        ("--dimension", "0", "--dimension = 0: must be a whole number of at least 1"),
        ("--body-bytes", "9", "--body-bytes = 9: must be a whole number of at least 1024"),
        ("--log-level", "loud", "--log-level = 'loud': must be one of debug, info, warning, error"),
        ("--store", "mysql://h/d", "--store = "),
    ],
)
def test_a_mistake_names_its_option(c4b: Call, option: str, value: str, message: str) -> None:
    assert failed(c4b, "serve", option, value).startswith(f"c4b: {message}")


def test_tokens_name_theirs_too(c4b: Call, tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/a.db")
    assert "--deployment = '/'" in failed(c4b, "token", "create", "--scope", "read", "--deployment", "/")
    assert "--store = " in failed(c4b, "token", "list", "--store", "nothing")
    c4b("token", "create", "--scope", "read", *store)
    assert "TOKEN = 'nobody'" in failed(c4b, "token", "revoke", "nobody", *store)


def test_tls_files_are_looked_at_first(c4b: Call, tmp_path: Path) -> None:
    text, none = tmp_path / "text.pem", tmp_path / "none.pem"
    text.write_text("no certificate")
    at = ("serve", "--port", free_port(), "--store", f"sqlite:///{tmp_path}/a.db")
    message = failed(c4b, *at, "--tls-cert", none, "--tls-key", text)
    assert message == f"c4b: --tls-cert = {str(none)!r}: cannot be read (No such file or directory)\n"
    message = failed(c4b, *at, "--tls-cert", text, "--tls-key", none)
    assert message == f"c4b: --tls-key = {str(none)!r}: cannot be read (No such file or directory)\n"
    assert "cannot be read (Is a directory)" in failed(
        c4b, *at, "--tls-cert", tmp_path, "--tls-key", text
    )
    assert "--tls-key = None: a certificate and its key" in failed(c4b, *at, "--tls-cert", text)
    assert "--tls-cert = None: a certificate and its key" in failed(c4b, *at, "--tls-key", text)
    message = failed(c4b, *at, "--tls-cert", text, "--tls-key", text)
    assert f"--tls-cert = {str(text)!r}: must be a certificate (PEM)" in message
    assert not (tmp_path / "a.db").exists()


def test_the_remedy_for_a_service_without_tokens_works(tmp_path: Path) -> None:
    """Refused for others; the command it gives, in the same folder, is all that it takes."""
    store = "sqlite:///my shop.db"  # a relative path, and one to be quoted
    port = str(free_port())
    command = [*C4B, "serve", "--store", store, "--host", "0.0.0.0", "--port", port]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    remedy = done.stderr.strip().split("make one first: ")[1]
    made = subprocess.run([*C4B, *shlex.split(remedy)[1:]], cwd=tmp_path, check=False, timeout=120)
    assert made.returncode == 0
    with serving(f"sqlite:///{tmp_path}/my shop.db", tmp_path / "log", "--host", "0.0.0.0") as running:
        assert "no token" not in running.log.read_text()


def test_a_password_is_not_shown() -> None:
    for url in (
        "postgresql://ann:se%40cret@host/shop",
        "postgresql://ann@host/shop?password=se%40cret",
        "postgresql://ann:se%40cret@host/shop?sslpassword=se%40cret&sslmode=require",
    ):
        command = token_command(url)
        assert "cret" not in command
        assert "host/shop" in command
        assert "with the password" in command
    assert token_command("postgresql://ann@host/shop").endswith("--store postgresql://ann@host/shop")


def test_the_notice_of_a_service_names_its_store(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    with serving(store, tmp_path / "log") as running:
        assert f"c4b token create --scope admin --store {store}\n" in running.log.read_text()


def test_sigterm_in_a_finalizer_ends_a_service_that_starts(capsys: pytest.CaptureFixture[str]) -> None:
    """Python ignores an exit that is raised there; before, the service went on to start."""

    class Thing:
        pass

    before = signal.getsignal(signal.SIGTERM), sys.unraisablehook
    try:
        with stoppable() as stop_if_told:
            stop_if_told()  # nobody has said anything
            thing = Thing()
            watched = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGTERM))
            del thing
            assert watched() is None
            with pytest.raises(SystemExit) as stopped:
                stop_if_told()
        assert stopped.value.code == 0
        assert sys.unraisablehook is before[1]
    finally:
        signal.signal(signal.SIGTERM, before[0])
    assert "Traceback" not in capsys.readouterr().err
