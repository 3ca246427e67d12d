"""PostgreSQL servers on loopback: a primary, and a standby that it waits for at each commit. From Debian's packages; nothing is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
BINARIES = next(iter(_PLACES), Path(shutil.which("initdb") or "/nowhere").parent)
THERE = (BINARIES / "initdb").exists()
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_level = replica
hot_standby = on
max_wal_senders = 8
shared_buffers = 32MB
max_connections = 60
log_min_messages = warning
"""
_MEMORY, _NEEDED = Path("/dev/shm"), 4 << 30
_IN_MEMORY = "max_wal_size = 96MB\n"  # memory is short


def give(folder: Path) -> None:
    """Have a folder and what is in it belong to the user who runs the servers."""
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", "postgres:postgres", str(folder)], check=True)


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Server:
    """One server, its data in a folder. It does not run as root: then as the user postgres."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs to its end."""
        found = subprocess.run(
            [str(BINARIES / program), *arguments], capture_output=True, text=True, cwd="/", **_identity()
        )
        assert found.returncode == 0, f"{program}: {found.stderr}"

    def begin(self, settings: str = "") -> None:
        """Make an empty primary."""
        self.run("initdb", "-D", str(self.folder), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS + settings)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = (self.folder.parent / f"log-{self.port}").open("ab")
        command = [str(BINARIES / "postgres"), "-D", str(self.folder), "-p", str(self.port)]
        self._process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd="/", start_new_session=True, **_identity()
        )
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.conninfo, connect_timeout=2).close()
                return
            except psycopg.OperationalError as error:
                assert self._process.poll() is None and time.monotonic() < until, f"{error}\n{self.log()}"
                time.sleep(0.05)

    def log(self) -> str:
        """What it has said."""
        return (self.folder.parent / f"log-{self.port}").read_text(errors="replace")

    def standby(self, folder: Path, port: int) -> Server:
        """A copy of this server that follows it under the name `standby`."""
        made = Server(folder, port)
        self.run(
            "pg_basebackup",
            "-D",
            str(folder),
            "-d",
            f"{self.conninfo} application_name=standby",
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        )
        made.start()
        return made

    @property
    def conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def url(self, store: str) -> str:
        """The address of a store at this server."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?store={store}"

    def sql(self, text: str) -> list[tuple[object, ...]]:
        """The rows of a statement."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            found = connection.execute(text)  # type: ignore[call-overload]
            return list(found.fetchall()) if found.description else []

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A standby that shows nothing new within the block."""
        self.sql("select pg_wal_replay_pause()")
        try:
            yield
        finally:
            self.sql("select pg_wal_replay_resume()")

    @contextmanager
    def files_of_at_most(self, size: int) -> Iterator[None]:
        """Within the block the system refuses the server to let a file grow over so many bytes, as a full disk does."""
        self._limit_files(str(size))
        try:
            yield
        finally:
            self._limit_files("unlimited")

    def _limit_files(self, size: str) -> None:
        clients = "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
        for pid in [self.pid, *(pid for (pid,) in self.sql(clients))]:
            command = ["prlimit", f"--pid={pid}", f"--fsize={size}:"]
            subprocess.run(  # its own user may; a client may have gone meanwhile
                command, check=pid == self.pid, capture_output=True, **_identity()
            )

    @contextmanager
    def encrypted(self) -> Iterator[Path]:
        """Within the block the server takes TLS. Gives the certificate that it shows."""
        certificate, key = self.folder.parent / "server.pem", self.folder.parent / "server.key"
        made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
        subprocess.run(
            [*made.split(), "-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
            **_identity(),
        )
        for name, value in {"ssl_cert_file": certificate, "ssl_key_file": key, "ssl": "on"}.items():
            self.sql(f"alter system set {name} = '{value}'")
        self.sql("select pg_reload_conf()")
        certificate.chmod(0o644)
        self.folder.parent.chmod(0o755)
        time.sleep(0.2)
        try:
            yield certificate
        finally:
            self.sql("alter system reset ssl")
            self.sql("select pg_reload_conf()")

    def kill(self) -> None:
        """kill -9 of it and of all its processes."""
        if self._process is not None:
            pids = _children(self._process.pid)
            for pid in [self._process.pid, *pids]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    @contextmanager
    def frozen(self, *, only: Sequence[int] = ()) -> Iterator[None]:
        """Within the block it and its processes are stopped, or `only` these: they say nothing, and the system keeps their connections."""
        pids = list(only) or [self.pid]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        if not only:
            pids += _children(self.pid)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def promote(self) -> None:
        """Make a standby the primary, which waits for nobody."""
        self.sql("select pg_promote(true, 30)")

    def stop(self) -> None:
        """End it at once; its data are no longer of use."""
        self.kill()


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True)
    return [int(one) for one in found.stdout.split()]


def _identity() -> dict[str, object]:
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}


class Pair:
    """A primary and the standby that it waits for."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder = folder
        self.primary = Server(folder / "primary", free_port())
        self.primary.begin(settings)
        self.primary.start()
        self.standby = self.primary.standby(folder / "standby", free_port())
        self.primary.sql("alter system set synchronous_standby_names = 'standby'")
        self.primary.sql("select pg_reload_conf()")
        until = time.monotonic() + 20
        while not self.primary.sql("select 1 from pg_stat_replication where sync_state = 'sync'"):
            assert time.monotonic() < until, self.primary.log()
            time.sleep(0.05)

    def url(self, store: str, *servers: Server) -> str:
        """The address of a store at these servers, of both without any."""
        hosts = ",".join(f"127.0.0.1:{one.port}" for one in servers or (self.primary, self.standby))
        return f"postgresql://postgres@{hosts}/postgres?store={store}"

    def stop(self) -> None:
        """End both."""
        self.primary.stop()
        self.standby.stop()


@contextmanager
def alone(settings: str = "fsync = off\n") -> Iterator[Server]:
    """One server, until the end of the block, whose files are in memory where there is room."""
    in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _NEEDED
    folder = Path(tempfile.mkdtemp(prefix="graphstore-postgres-", dir=_MEMORY if in_memory else None))
    give(folder)
    made = Server(folder / "primary", free_port())
    try:
        made.begin(settings + (_IN_MEMORY if in_memory else ""))
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def pair(*, in_memory: bool = False) -> Iterator[Pair]:
    """Two servers, until the end of the block. `in_memory`: their files are in memory where there is room, which outlives a server that is killed."""
    in_memory = in_memory and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _NEEDED
    folder = Path(tempfile.mkdtemp(prefix="graphstore-postgres-", dir=_MEMORY if in_memory else None))
    give(folder)
    made: Pair | None = None
    try:
        made = Pair(folder, _IN_MEMORY if in_memory else "")
        yield made
    finally:
        if made is not None:
            made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def pooler(server: Server) -> Iterator[int]:
    """The port of a pgbouncer in transaction mode in front of a server, until the end of the block."""
    folder, port = Path(tempfile.mkdtemp(prefix="graphstore-pooler-")), free_port()
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {folder / 'users'}\npool_mode = transaction\ndefault_pool_size = 3\n"
    )
    give(folder)
    running = subprocess.Popen(
        [shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", str(folder / "pgbouncer.ini")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **_identity(),
    )  # fmt: skip
    try:
        until = time.monotonic() + 20
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert running.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        yield port
    finally:
        running.kill()
        running.wait()
        shutil.rmtree(folder, ignore_errors=True)
