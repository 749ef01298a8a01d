"""Real databases for the store's tests: SQLite files, and a PostgreSQL server where there is one."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def _binary(name: str) -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders += [Path(folder) for folder in ("/usr/local/pgsql/bin", "/opt/homebrew/bin")]
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    found = shutil.which(name)
    return Path(found) if found else None


def _as_user() -> list[str]:
    """PostgreSQL refuses to run as root: the words that make a command run as somebody else."""
    if os.geteuid() != 0:
        return []
    for user in ("postgres", "nobody"):
        try:
            pwd.getpwnam(user)
        except KeyError:
            continue
        if shutil.which("runuser"):
            return ["runuser", "-u", user, "--"]
        if shutil.which("setpriv"):
            return [
                "setpriv",
                f"--reuid={user}",
                f"--regid={pwd.getpwnam(user).pw_gid}",
                "--clear-groups",
                "--",
            ]
    pytest.skip(
        "running as root, and neither runuser nor setpriv is here to start PostgreSQL as somebody else"
    )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a running PostgreSQL, without a database name."""
    initdb, server = _binary("initdb"), _binary("postgres")
    if initdb is None or server is None:
        pytest.skip("PostgreSQL's initdb and postgres are not installed here")
    pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")
    words = _as_user()
    # Not in pytest's folder: that one is closed to the user that the server runs as.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    folder.chmod(0o777)
    env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": str(folder)}
    data = folder / "data"
    command = [*words, str(initdb), "-D", str(data), "-U", "me", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(command, check=True, env=env, cwd=folder, stdout=subprocess.DEVNULL)
    settings = [
        "listen_addresses=",
        f"unix_socket_directories={folder}",
        "fsync=off",
        "synchronous_commit=off",
    ]
    command = [
        *words,
        str(server),
        "-D",
        str(data),
        *[word for setting in settings for word in ("-c", setting)],
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)
    address = f"postgresql://me@/postgres?host={folder}"
    try:
        _wait(process, address, folder / "log")
        yield address
    finally:
        # At once: the data is thrown away. `process` may only be what runs the server for us.
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            if process.poll() is not None:
                pytest.fail(f"PostgreSQL did not start: {log.read_text()}")
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"PostgreSQL did not answer: {log.read_text()}")


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of an empty database. One database, emptied each time: making one writes many files."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return postgres_server


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where to open a store: each test runs against both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "record.sqlite")
    return str(request.getfixturevalue("postgres"))
