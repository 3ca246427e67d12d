"""Locks a file for one process with `flock`, or `LockFileEx` on Windows. The operating system releases a lock when its process ends."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    _EXCLUSIVE, _AT_ONCE, _IS_LOCKED = 2, 1, 33
    _FAR = 1 << 30  # offset of the locked byte: other processes cannot read locked bytes

    class _Overlapped(ctypes.Structure):
        _fields_ = [
            *[(name, ctypes.c_void_p) for name in ("internal", "internal_high")],
            *[(name, wintypes.DWORD) for name in ("offset", "offset_high")],
            ("event", wintypes.HANDLE),
        ]

    _place, _words = ctypes.POINTER(_Overlapped), [wintypes.DWORD] * 3
    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.LockFileEx.argtypes = [wintypes.HANDLE, wintypes.DWORD, *_words, _place]
    _kernel.UnlockFileEx.argtypes = [wintypes.HANDLE, *_words, _place]

    def _lock(fd: int, flags: int) -> bool:
        place = _Overlapped(offset=_FAR)
        if _kernel.LockFileEx(msvcrt.get_osfhandle(fd), flags, 0, 1, 0, ctypes.byref(place)):
            return True
        error = ctypes.get_last_error()
        if flags & _AT_ONCE and error == _IS_LOCKED:
            return False
        raise ctypes.WinError(error)

    def try_lock(fd: int) -> bool:
        return _lock(fd, _EXCLUSIVE | _AT_ONCE)

    def wait_lock(fd: int) -> None:
        _lock(fd, _EXCLUSIVE)

    def unlock(fd: int) -> None:
        place = _Overlapped(offset=_FAR)
        _kernel.UnlockFileEx(msvcrt.get_osfhandle(fd), 0, 1, 0, ctypes.byref(place))

    def is_locked(fd: int) -> bool:
        if not _lock(fd, _AT_ONCE):
            return True
        unlock(fd)
        return False

else:
    try:
        import fcntl
    except ImportError:  # a platform without flock: only the threads of one process take turns
        fcntl = None  # type: ignore[assignment]

    def try_lock(fd: int) -> bool:
        """Lock a file without waiting. Return False if it is already locked. Raises OSError."""
        if fcntl is not None:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def wait_lock(fd: int) -> None:
        """Lock a file, and wait as long as needed. Raises OSError."""
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX)

    def unlock(fd: int) -> None:
        """Unlock a file. Does nothing if it is not locked through `fd`."""
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def is_locked(fd: int) -> bool:
        """Return True if another process has locked a file, or if this system cannot tell."""
        if fcntl is None:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False
