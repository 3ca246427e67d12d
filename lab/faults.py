"""The preloaded library that fails system calls (`faults.c`): how it is built, and what a round asks of it."""

from __future__ import annotations

import errno
import os
import random
import shutil
import struct
import subprocess
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

CALLS = ("open", "read", "write", "fsync", "fdatasync", "rename", "unlink", "ftruncate", "mmap", "mkdir")
SHORT = -1  # half of a read or write is done
_ERRORS = {
    "open": (errno.EIO, errno.EMFILE, errno.ENOSPC),
    "read": (errno.EIO, SHORT),
    "write": (errno.EIO, errno.ENOSPC, SHORT),
    "fsync": (errno.EIO, errno.ENOSPC),
    "fdatasync": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EIO, errno.ENOSPC),
    "unlink": (errno.EIO,),
    "ftruncate": (errno.EIO,),
    "mmap": (errno.ENOMEM, errno.EIO),
    "mkdir": (errno.EIO, errno.ENOSPC),
}
_REACH = {"write": 300, "fdatasync": 300, "open": 80, "read": 200, "fsync": 30, "mmap": 10, "rename": 10, "unlink": 10, "ftruncate": 10, "mkdir": 2}  # fmt: skip


@cache
def library() -> Path:
    """The built library, made once. Raises RuntimeError when there is no C compiler."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise RuntimeError("the lab needs a C compiler: gcc, cc, or the one that CC names")
    built = Path(tempfile.mkdtemp(prefix="lab-faults-")) / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-O2", "-fPIC", "-shared", "-o", built, source, "-ldl"], check=True)
    return built


def plan(chance: random.Random, calls: tuple[str, ...] = CALLS) -> str:
    """A few faults, as LAB_FAULTS has them: which calls fail, from which on, how often, and how."""
    rules = []
    for _ in range(chance.randint(1, 5)):
        call = chance.choice(calls)
        first = chance.randint(1, _REACH[call])
        times = chance.choice((1, 1, 1, 2, 3, 20))
        rules.append(f"{call}:{first}:{times}:{chance.choice(_ERRORS[call])}")
    return ",".join(rules)


def preload(folder: Path, report: Path, **more: object) -> dict[str, str]:
    """The variables of a process whose calls below a folder are watched; `more` as `faults.c` tells them."""
    said = {"LAB_" + name.upper(): str(value) for name, value in more.items()}
    return {"LD_PRELOAD": str(library()), "LAB_FOLDER": str(folder), "LAB_REPORT": str(report), **said}


def injected(report: Path) -> Counter[str]:
    """How often each call failed."""
    if not report.exists():
        return Counter()
    return Counter(line.split()[0] for line in report.read_text(errors="replace").splitlines())


class JumpingClock:
    """The file by which the clocks of preloaded processes are moved."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.move(0)

    def move(self, seconds: float) -> None:
        """Set how far the time of day is off."""
        fd = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("q", int(seconds * 1_000_000)), 0)
        os.close(fd)
