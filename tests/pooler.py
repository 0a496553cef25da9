"""PgBouncer in transaction mode, with so few connections that two statements in a row really meet two servers."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import pytest

from tests.toolchain import pgbouncer, postgres_url

_CONFIG = """
[databases]
* = host={host} port={port} user={user}{password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
server_round_robin = 1
default_pool_size = 4
min_pool_size = 4
max_client_conn = 500
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


@dataclass(frozen=True, slots=True)
class Pooler:
    """Where it listens."""

    port: int

    def url_of(self, database: str) -> str:
        """The store's URL for a database on the server, through the pooler; it listens for wakes past it."""
        parts = urlsplit(database)
        server = f"{parts.hostname}:{parts.port or 5432}"
        user = parts.netloc.rpartition("@")[0] or "postgres"
        return urlunsplit(
            parts._replace(netloc=f"{user}@127.0.0.1:{self.port}", query=f"pgbouncer=1&listen={server}&pool_size=6")
        )


@pytest.fixture(scope="session")
def pooler() -> Iterator[Pooler]:
    """A pooler in front of the server that tests use."""
    program, server = pgbouncer(), urlsplit(postgres_url())
    assert program is not None
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        free.close()
        Path(folder).chmod(0o777)
        config = Path(folder, "pgbouncer.ini")
        password = f" password={unquote(server.password)}" if server.password else ""
        config.write_text(
            _CONFIG.format(
                host=server.hostname,
                port=server.port or 5432,
                user=server.username or "postgres",
                password=password,
                listen=port,
                folder=folder,
            )
        )
        # It refuses to run as root.
        user = "nobody" if os.getuid() == 0 else None
        process = subprocess.Popen([program, str(config)], user=user, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port, process)
            yield Pooler(port)
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        assert process.poll() is None, "pgbouncer did not start"
        time.sleep(0.05)
    raise AssertionError("pgbouncer does not listen")
