"""Checks whether a process of this machine is alive, and distinguishes it from a later one with the same number."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def host_name() -> str:
    """Return the name of this machine."""
    import socket  # not needed by processes that only read a store

    return socket.gethostname()


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _QUERY, _SYNCHRONIZE = 0x1000, 0x100000
    _DENIED, _RUNS = 5, 258
    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.OpenProcess.argtypes = [wintypes.DWORD, wintypes.BOOL, wintypes.DWORD]
    _kernel.OpenProcess.restype = wintypes.HANDLE
    _kernel.WaitForSingleObject.argtypes = [wintypes.HANDLE, wintypes.DWORD]
    _kernel.CloseHandle.argtypes = [wintypes.HANDLE]
    _kernel.GetProcessTimes.argtypes = [wintypes.HANDLE, *[ctypes.POINTER(wintypes.FILETIME)] * 4]

    def lives(pid: int) -> bool:
        process = _kernel.OpenProcess(_SYNCHRONIZE, False, pid)
        if not process:
            return ctypes.get_last_error() == _DENIED
        try:
            return bool(_kernel.WaitForSingleObject(process, 0) == _RUNS)
        finally:
            _kernel.CloseHandle(process)

    def process_start(pid: int) -> str | None:
        process = _kernel.OpenProcess(_QUERY, False, pid)
        if not process:
            return None
        times = [wintypes.FILETIME() for _ in range(4)]
        try:
            if not _kernel.GetProcessTimes(process, *map(ctypes.byref, times)):
                return None
        finally:
            _kernel.CloseHandle(process)
        return str(times[0].dwHighDateTime << 32 | times[0].dwLowDateTime)

else:
    _START_TICKS = 19  # index of the field after the name in /proc/PID/stat

    def lives(pid: int) -> bool:
        """Return True if a process with this number exists, of this or another user."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True  # another user's
        return True

    def process_start(pid: int) -> str | None:
        """Return the start of a process: on Linux the boot of the machine and the clock ticks since; elsewhere the output of `ps`. None if it is
        not shown."""
        if sys.platform != "linux":
            return _shown_start(pid)
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            return f"{boot} {stat.rpartition(')')[2].split()[_START_TICKS]}"
        except (OSError, IndexError):
            return None

    def _shown_start(pid: int) -> str | None:
        import subprocess  # not needed on Linux

        try:
            shown = subprocess.run(
                ["ps", "-o", "lstart=", "-p", str(pid)],
                capture_output=True,
                env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
                timeout=5,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return shown.stdout.decode(errors="replace").strip() or None
