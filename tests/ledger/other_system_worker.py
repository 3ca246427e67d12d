"""What processes do in the tests of other systems: `python -m tests.ledger.other_system_worker WHAT STORE …`."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
from pathlib import Path

from graphstore.errors import EngineError


def names(_: str) -> None:
    """Print the first modules of Unix and names of it that code of the project can reach, and the system it believes to run on."""
    code = """if True:
        import os, signal, sys
        found = [name for name in ("fork", "pread", "geteuid", "O_NOFOLLOW", "register_at_fork", "fdatasync") if hasattr(os, name)]
        found += [name for name in ("SIGKILL", "SIGHUP", "pthread_sigmask") if hasattr(signal, name)]
        for name in ("fcntl", "termios", "resource", "pwd"):
            try:
                exec(f"import {name}")
                found.append(name)
            except ImportError:
                pass
        print(sys.platform, *found)
    """
    exec(code, {"__name__": "graphstore.there"})


def modules(_: str) -> None:
    """Import every module of the package; print those that could not be, with the reason."""
    import graphstore

    for module in pkgutil.walk_packages(graphstore.__path__, "graphstore."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except Exception as error:
                if isinstance(error, ModuleNotFoundError) and module.name.startswith("graphstore.adapters."):
                    continue  # its framework is not installed here
                print(module.name, repr(error))


def story(path: str) -> None:
    """Write, read and query a store, as it is, as it was, on a branch and after it was opened again; copy it, evict and erase from it."""
    import graphstore

    with graphstore.open(path, create=True) as store:
        store.add_node("fact", {"text": "sessions"}, id="old", valid_from="2026-01-01")
        store.add_node("fact", {"text": "tokens"}, id="new", valid_from="2026-02-01", supersedes=["old"])
        store.record_event("error", "SECRET of mine", id="secret")
        store.record_event("error", "gone soon", id="evicted")
        store.bulk_load(versions=[{"node_id": f"n{n}", "content": {"n": n}} for n in range(300)])
        store.branch("idea").add_node("fact", {"text": "two"}, id="idea")
        assert ["old"] == [node.id for node in store.as_of(valid="2026-01-10").nodes("fact")]
        counted = [{"n": 301}]  # not `old`, which was superseded
        assert counted == store.as_of().query("MATCH (n:Node) RETURN count(*) AS n").rows()
        assert 301 <= store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
    with graphstore.open(path) as store:
        assert [] == store.notices
        assert (Path(path) / "graph.kuzu").exists()
        assert {"text": "tokens"} == store.as_of().node("new").content
        store.query_tables("MATCH (n:Node) RETURN count(*)")
        store.export(f"{path}.dump")
        store.evict(ids=["evicted"], keep_audit=False, reason="old")
        store.query_tables("MATCH (n:Node) RETURN count(*)")
        store.erase("secret", reason="asked")
        assert counted == store.as_of().query("MATCH (n:Node) RETURN count(*) AS n").rows()
    with graphstore.open(path) as store:
        assert [] == store.notices
        assert store.verify().ok
        store.snapshot("before-release")
    with graphstore.restore(f"{path}.dump", f"{path}.restored") as copy:
        assert "SECRET of mine" in str(copy.as_of().event("secret"))
    Path(f"{path}.empty").mkdir()
    graphstore.restore(f"{path}.dump", f"{path}.empty").close()
    with graphstore.open(path, read_only=True) as reader:
        assert {"text": "tokens"} == reader.as_of().node("new").content


def write(path: str, name: str, count: str) -> None:
    """Add nodes one by one."""
    import graphstore

    with graphstore.open(path, create=True) as store:
        for number in range(int(count)):
            store.add_node("fact", {"by": name}, id=f"{name}-{number}")


def tables(path: str) -> None:
    """Hold the graph tables until a line comes, then follow what others wrote."""
    import graphstore

    with graphstore.open(path) as store:
        store.query_tables("MATCH (n:Node) RETURN count(*)")
        print("ready", flush=True)
        sys.stdin.readline()
        store.refresh()
        print(store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"], flush=True)


def erase(path: str, name: str) -> None:
    """Erase a thing; print what is refused, and whether it was kept."""
    import graphstore

    with graphstore.open(path) as store:
        try:
            store.erase(name, reason="asked")
        except EngineError as error:
            print(error.outcome, str(error))


def replace(path: str) -> None:
    """Replace a file that this process reads for a moment longer."""
    from graphstore.ledger.files import replace_whole

    file = open(path, "rb")  # noqa: SIM115
    closing = threading.Timer(0.3, file.close)
    closing.start()
    replace_whole(Path(path), b"new")
    print(file.closed)
    closing.join()


def held(folder: str) -> None:
    """Print what reading gives that is held to a folder: of a file there, of links that lead out, and of a folder."""
    from graphstore.values.file_access import held_to, opened

    with held_to(Path(folder)):
        for name in ("inner/file", "link", "linked/outside", "inner"):
            try:
                with opened(Path(folder) / name) as file:
                    print(file.read().decode())
            except OSError as error:
                print("PermissionError" if isinstance(error, PermissionError) else repr(error))


def upgrade(path: str) -> None:
    """Open a store of release 0.1, which upgrades it; print the notices and what is in it."""
    import graphstore

    with graphstore.open(path) as store:
        print(*store.notices)
        assert store.verify().ok
        print(store.stats()["nodes"], flush=True)
        store.erase("secret", reason="asked")


def ask(url: str, token: str) -> None:
    """Write and read through a server."""
    import graphstore

    with graphstore.open(url, token=token) as store:
        store.add_node("fact", {"text": "tokens"}, id="served")
        store.add_node("fact", {"text": "keys"}, id="other")
        assert {"text": "tokens"} == store.as_of().node("served").content
        print(store.as_of().query("MATCH (n:Node) RETURN count(*) AS n").single()["n"])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
