"""Refuses folders on network file systems. SQLite's write-ahead log does not work there, and SQLite does not detect that."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from graphstore.errors import InvalidError

NETWORK = frozenset(
    "9p acfs afs beegfs ceph cifs coda fuse.ceph fuse.glusterfs fuse.rclone fuse.s3fs fuse.sshfs fuse.vmhgfs-fuse glusterfs gfs2 gpfs lustre ncpfs nfs "
    "nfs4 ocfs2 orangefs prl_fs smb2 smb3 smbfs sshfs vboxsf".split()
)
_MOUNTINFO = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """A mounted file system."""

    point: str
    kind: str


def refuse_network(path: Path, mountinfo: str | None = None) -> None:
    """Raise InvalidError if a folder, which need not exist, is on a network file system.

    Args:
        path: the folder.
        mountinfo: mounts in the format of Linux's /proc/self/mountinfo; None for those of this machine.

    Linux, macOS and Windows are checked; on other systems every folder passes.
    """
    real = os.path.realpath(path)
    if mountinfo is None and sys.platform == "linux":
        try:
            mountinfo = Path(_MOUNTINFO).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:  # /proc is not mounted
            return
    mount = remote_drive(real) if mountinfo is None else mount_of(real, mountinfo)
    if mount is not None and mount.kind in NETWORK:
        raise InvalidError(
            f"{path} is on a network file system ({mount.kind}, mounted at {mount.point}), where processes cannot share a store safely. "
            "Choose a folder on a local disk, and reach it from other machines through graphstore serve"
        )


def mount_of(real: str, mountinfo: str) -> Mount | None:
    """Return the mount of a path without symbolic links: the one with the longest mount point, and of equal ones the last."""
    best: Mount | None = None
    for entry in mountinfo.split("\n"):
        before, dash, after = entry.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 6:
            continue
        point = _unescaped(fields[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) >= len(best.point)):
            best = Mount(point, _unescaped(after.split(" ")[0]))
    return best


def _unescaped(text: str) -> str:
    r"""Return a field of mountinfo with its escapes decoded: the kernel writes blanks as `\040` and backslashes as `\134`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


if sys.platform == "win32":
    import ctypes

    _REMOTE = 4  # what GetDriveType returns for a network drive

    def remote_drive(real: str) -> Mount | None:
        """Return the network drive or share that a path is on; None if it is on another drive."""
        root = os.path.splitdrive(real)[0] + "\\"
        share = root.startswith("\\\\") and not re.match(r"\\\\[?.]\\(?!UNC\\)", root, re.IGNORECASE)
        return (
            Mount(root, "smbfs") if share or ctypes.windll.kernel32.GetDriveTypeW(root) == _REMOTE else None
        )

elif sys.platform == "darwin":
    import ctypes

    class _StatFS(ctypes.Structure):
        _fields_ = [
            ("f_bsize", ctypes.c_uint32),
            ("f_iosize", ctypes.c_int32),
            ("f_counts", ctypes.c_uint64 * 5),
            ("f_fsid", ctypes.c_int32 * 2),
            ("f_owner", ctypes.c_uint32),
            ("f_type", ctypes.c_uint32),
            ("f_flags", ctypes.c_uint32),
            ("f_fssubtype", ctypes.c_uint32),
            ("f_fstypename", ctypes.c_char * 16),
            ("f_mntonname", ctypes.c_char * 1024),
            ("f_mntfromname", ctypes.c_char * 1024),
            ("f_reserved", ctypes.c_uint32 * 8),
        ]

    def remote_drive(real: str) -> Mount | None:
        """Return the mount of a path, or of its nearest existing parent; None if the system does not show it."""
        there = Path(real)
        while not there.exists() and there != there.parent:
            there = there.parent
        library = ctypes.CDLL(None)
        call = getattr(library, "statfs$INODE64", None) or getattr(library, "statfs", None)
        found = _StatFS()
        if call is None or call(os.fsencode(there), ctypes.byref(found)):
            return None
        return Mount(os.fsdecode(found.f_mntonname), found.f_fstypename.decode())

else:

    def remote_drive(real: str) -> Mount | None:
        """Return None: this system is not checked."""
        return None
