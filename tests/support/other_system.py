"""Lets this project's code run on Linux as if it ran on Windows or macOS: `environment(system, folder)` is what a child process is started with.

The modules of `graphstore` see the standard library as it is there: names that the system lacks are missing, `sys.platform` and `os.name` are its own, and
modules of Unix cannot be imported. Python itself and other packages see Linux, without which they could not run here. Of Windows also these rules apply,
for everybody: an open file is not removed, renamed, replaced or truncated, a folder with an open file in it is not renamed, a folder is not opened, and
a file that is open for reading only is not synced. `kernel32` is stood in for by what Linux has.
"""

from __future__ import annotations

import asyncio
import asyncio.unix_events
import builtins
import contextlib
import ctypes
import errno
import fcntl
import io
import mmap
import os
import select
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from ctypes import wintypes
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[2]
TRACE = (
    "OTHER_SYSTEM_TRACE"  # names a file: what was asked of the system that Linux has not is appended to it
)

_ON_WINDOWS = {
    "os": """
        DirEntry F_OK GenericAlias Mapping MutableMapping O_APPEND O_CREAT O_EXCL O_RDONLY O_RDWR O_TRUNC O_WRONLY P_NOWAIT P_NOWAITO P_WAIT PathLike R_OK
        SEEK_CUR SEEK_END SEEK_SET TMP_MAX W_OK X_OK abc abort access altsep chdir chmod close closerange cpu_count curdir defpath device_encoding devnull dup
        dup2 environ error execl execle execlp execlpe execv execve execvp execvpe extsep fdopen fsdecode fsencode fspath fstat fsync ftruncate get_exec_path
        get_inheritable get_terminal_size getcwd getcwdb getenv getlogin getpid getppid isatty kill linesep link listdir lseek lstat makedirs mkdir name open
        pardir path pathsep pipe popen putenv read readlink remove removedirs rename renames replace rmdir scandir sep set_inheritable spawnl spawnle spawnv
        spawnve st stat stat_result statvfs_result strerror supports_bytes_environ supports_dir_fd supports_effective_ids supports_fd supports_follow_symlinks
        symlink sys system terminal_size times times_result truncate umask uname_result unlink unsetenv urandom utime waitpid waitstatus_to_exitcode walk write
    """,
    "signal": """
        Handlers NSIG SIGABRT SIGFPE SIGILL SIGINT SIGSEGV SIGTERM SIG_DFL SIG_IGN Signals default_int_handler getsignal raise_signal set_wakeup_fd signal
        strsignal valid_signals
    """,
    "select": "error select",
    "mmap": "ACCESS_COPY ACCESS_DEFAULT ACCESS_READ ACCESS_WRITE ALLOCATIONGRANULARITY PAGESIZE error mmap",
}  # fmt: skip
_NOT_ON_WINDOWS = {
    "socket": "AF_UNIX AF_NETLINK AF_PACKET CMSG_LEN SCM_RIGHTS SO_REUSEPORT recv_fds send_fds socketpair",
    "time": "tzset clock_gettime clock_gettime_ns clock_settime pthread_getcpuclockid CLOCK_MONOTONIC CLOCK_REALTIME",
}
_NOT_ON_MACOS = {
    "os": """
        O_DIRECT O_LARGEFILE O_NOATIME O_PATH O_RSYNC O_TMPFILE copy_file_range eventfd fdatasync getrandom getresgid getresuid getxattr listxattr memfd_create
        pidfd_open pipe2 posix_fadvise posix_fallocate removexattr sched_getaffinity sched_setaffinity setresgid setresuid setxattr splice
    """,
    "signal": "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo",
    "select": "epoll",
}
_MODULES = {
    "windows": "crypt curses fcntl grp nis posix pty pwd readline resource spwd syslog termios tty uvloop",
    "macos": "spwd nis",
}
_SITE = """import os, traceback
try:
    from tests.support.other_system import become
    become({system!r})
except BaseException:  # Python goes on without this file
    traceback.print_exc()
    os._exit(97)
"""
_O_BINARY = 0x8000  # as on Windows; on Linux it says that a file may be large
_OPEN_THERE = OSError(13, "The process cannot access the file because it is being used by another process")
_FULL_SYNC = 51  # F_FULLFSYNC

_frame = sys._getframe
_real = {
    name: getattr(os, name) for name in "open unlink rename replace rmdir truncate fsync kill stat".split()
}
_real_open = io.open
_missing: dict[str, frozenset[str]] = {}
_added: dict[str, dict[str, Any]] = {}


def environment(system: str, folder: Path) -> dict[str, str]:
    """Return the environment of a child process that is to run as on `windows` or `macos`; `folder` gets the file that makes it so."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(_SITE.format(system=system), encoding="utf-8")
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, TRACE: str(folder / "trace"), "PYTHONUTF8": "0"}


def become(system: str) -> None:
    """Make this process one of that system."""
    assert "graphstore" not in sys.modules
    if system == "windows":
        _become_windows()
    else:
        _become_macos()
    for module in {sys, *map(sys.modules.__getitem__, {*_missing, *_added})}:
        if type(module) is ModuleType:
            module.__class__ = _Face
    given = {"msvcrt": SimpleNamespace(get_osfhandle=lambda fd: fd)} if system == "windows" else {}
    _refuse_imports(frozenset(_MODULES[system].split()), given)
    _hide_proc()


# ---- what modules of the project see ----------------------------------------------------------------


class _Face(ModuleType):
    """A module of the standard library, whose names depend on who looks."""

    def __getattribute__(self, name: str) -> Any:
        own = ModuleType.__getattribute__(self, "__name__")
        if name in _added.get(own, ()) and _is_ours(_frame(1)):
            return _added[own][name]
        if name in _missing.get(own, ()) and _is_ours(_frame(1)):
            raise AttributeError(f"module {own!r} has no attribute {name!r}", name=name, obj=self)
        return ModuleType.__getattribute__(self, name)


def _is_ours(frame: Any) -> bool:
    name = frame.f_globals.get("__name__", "")
    return isinstance(name, str) and (name == "graphstore" or name.startswith("graphstore."))


def _called_by_us() -> bool:
    """Return True if the project's code called, itself or through `pathlib` and the like."""
    frame = _frame(2)
    while frame is not None and frame.f_globals.get("__name__") in ("pathlib", "io", "posixpath", __name__):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and _is_ours(frame)


def _hide(names: dict[str, str]) -> None:
    for module, missing in names.items():
        _missing[module] = frozenset(missing.split())


def _refuse_imports(names: frozenset[str], given: dict[str, Any]) -> None:
    real = builtins.__import__

    def find(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and globals is not None and _is_ours(SimpleNamespace(f_globals=globals)):
            if name.partition(".")[0] in names:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in given:
                return given[name]
        return real(name, globals, locals, fromlist, level)

    builtins.__import__ = find


def _hide_proc() -> None:
    def opened(file: Any, *args: Any, **options: Any) -> Any:
        if str(file).startswith("/proc/") and _called_by_us():
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(file))
        return _real_open(file, *args, **options)

    io.open = builtins.open = opened


def _trace(what: str) -> None:
    fd = _real["open"](os.environ[TRACE], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, f"{what}\n".encode())
    os.close(fd)


# ---- macOS ------------------------------------------------------------------------------------------


def _become_macos() -> None:
    _hide(_NOT_ON_MACOS)
    _added["sys"] = {"platform": "darwin"}

    def control(fd: int, command: int, argument: Any = 0) -> Any:
        if command == _FULL_SYNC:
            _real["fsync"](fd)
            _trace("F_FULLFSYNC")
            return 0
        return fcntl_control(fd, command, argument)

    fcntl_control = fcntl.fcntl
    _added["fcntl"] = {"F_FULLFSYNC": _FULL_SYNC, "fcntl": control}


# ---- Windows ----------------------------------------------------------------------------------------


def _become_windows() -> None:
    _hide(_NOT_ON_WINDOWS)
    for module, names in _ON_WINDOWS.items():
        known = {name for name in dir(sys.modules[module]) if not name.startswith("_")}
        _missing[module] = frozenset(known - set(names.split()))
    _added["sys"] = {"platform": "win32"}
    _added["os"] = {"name": "nt", "O_BINARY": _O_BINARY, "kill": _end}
    _added["ctypes"] = {
        "WinDLL": lambda *_, **__: _kernel,
        "windll": SimpleNamespace(kernel32=_kernel),
        "CDLL": _library,
        "get_last_error": lambda: _kernel.error,
        "WinError": lambda error: OSError(errno.EIO, f"error {error} of Windows"),
    }
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    os.open, os.fsync = _open, _fsync  # type: ignore[assignment]
    os.unlink = os.remove = _unlink  # type: ignore[assignment]
    os.rename, os.replace = _rename, _replace  # type: ignore[assignment]
    os.rmdir = _only_closed(_real["rmdir"])
    os.truncate = _only_closed(_real["truncate"], reads=True)
    asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler = _no_handlers  # type: ignore[attr-defined]


def _end(pid: int, number: int) -> None:
    raise RuntimeError(f"os.kill({pid}, {number}) ends a process on Windows, or a whole console")


def _library(name: str | None, *args: Any, **options: Any) -> Any:
    if name is None:
        raise TypeError("LoadLibrary() argument 1 must be str, not None")
    return ctypes.CDLL(name, *args, **options)


def _no_handlers(*_: Any) -> None:
    raise NotImplementedError


def _opened_files() -> set[str]:
    """Return the paths of the files that any process has open."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):  # another user's, or it has ended
            for fd in folder.iterdir():
                with contextlib.suppress(OSError):  # closed meanwhile
                    found.add(str(fd.readlink()))
    return found


def _refuse_open(path: Any) -> None:
    """Raise PermissionError for a file that is open, and for a folder in which one is."""
    place = Path(os.fsdecode(path)).absolute()
    real = str(place.parent.resolve() / place.name)
    if any(file == real or file.startswith(f"{real}/") for file in _opened_files()):
        raise PermissionError(*_OPEN_THERE.args, str(path))


def _only_closed(call: Callable[..., Any], *, reads: bool = False) -> Callable[..., Any]:
    def run(path: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(path, int):
            _refuse_open(path)
        return call(path, *args, **options)

    return run


def _unlink(path: Any, **options: Any) -> None:
    if stat.S_ISDIR(os.lstat(path).st_mode):
        raise PermissionError(errno.EACCES, "Access is denied", str(path))
    _refuse_open(path)
    _real["unlink"](path, **options)


def _rename(source: Any, target: Any, **options: Any) -> None:
    _refuse_open(source)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", str(target))
    _real["rename"](source, target, **options)


def _replace(source: Any, target: Any, **options: Any) -> None:
    _refuse_open(source)
    if os.path.lexists(target):
        if Path(target).is_dir():
            raise PermissionError(errno.EACCES, "Access is denied", str(target))
        _refuse_open(target)
    _real["replace"](source, target, **options)


def _open(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
    if Path(path).is_dir() and _called_by_us():
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    if not flags & _O_BINARY and os.fsdecode(path) != os.devnull and _called_by_us():
        raise RuntimeError(f"os.open({path!r}) without O_BINARY changes line ends on Windows")
    return int(_real["open"](path, flags, mode, **options))


def _fsync(fd: int) -> None:
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    _real["fsync"](fd)


class _Kernel32:
    """The functions of Windows that the project calls, by means of Linux."""

    error = 0

    def __init__(self) -> None:
        for name in "LockFileEx UnlockFileEx OpenProcess WaitForSingleObject CloseHandle GetProcessTimes GetDriveTypeW".split():
            call = getattr(self, f"_{name}")
            setattr(self, name, lambda *args, call=call: call(*args))  # a function, which takes argtypes

    def _LockFileEx(self, handle: int, flags: int, *_: Any) -> int:
        how = (fcntl.LOCK_EX if flags & 2 else fcntl.LOCK_SH) | (fcntl.LOCK_NB if flags & 1 else 0)
        try:
            fcntl.flock(handle, how)
        except BlockingIOError:
            self.error = 33
            return 0
        return 1

    def _UnlockFileEx(self, handle: int, *_: Any) -> int:
        fcntl.flock(handle, fcntl.LOCK_UN)
        return 1

    def _OpenProcess(self, access: int, inherit: bool, pid: int) -> int | None:
        if Path(f"/proc/{pid}").exists():
            return pid
        self.error = 87
        return None

    def _WaitForSingleObject(self, handle: int, milliseconds: int) -> int:
        return 258 if Path(f"/proc/{handle}").exists() else 0

    def _CloseHandle(self, handle: int) -> int:
        return 1

    def _GetProcessTimes(self, handle: int, begun: Any, *_: Any) -> int:
        with _real_open(f"/proc/{handle}/stat", encoding="utf-8") as file:
            begun._obj.dwLowDateTime = int(file.read().rpartition(")")[2].split()[19])
        return 1

    def _GetDriveTypeW(self, root: str) -> int:
        return 3


_kernel = _Kernel32()
_USED = (mmap, select, signal, time, wintypes)  # modules that have a face
