"""Builds the read kernel beside its source, for `pip install`, editable or not, and for wheels; `python hatch_build.py` builds it alone.

It needs the C compiler that this Python was made with, and its headers. Where they are missing, on another Python than CPython, and with GRAPHSTORE_PURE=1,
there is no kernel: the Python way answers all reads. One build serves Python 3.11 and all later ones.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run alone
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT / "graphstore" / "core" / "read" / "_kernel.c"
BUILT = SOURCE.with_name("_kernel.abi3.so")
PURE = os.environ.get("GRAPHSTORE_PURE", "0") not in ("", "0")


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or not build() or version == "editable":
            return
        build_data["artifacts"].append(str(BUILT.relative_to(ROOT)))
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"


def build() -> bool:
    """Whether there is a kernel made from this source. A file that cannot be made anew is removed."""
    if not PURE and BUILT.exists() and BUILT.stat().st_mtime >= SOURCE.stat().st_mtime:
        return True
    if PURE or not compile_into(BUILT):
        BUILT.unlink(missing_ok=True)
        return False
    return True


def compile_into(target: Path, *flags: str) -> bool:
    """Whether the source could be compiled with these flags beside those of this Python."""
    link, include = sysconfig.get_config_var("LDSHARED"), sysconfig.get_path("include")
    if sys.implementation.name != "cpython" or not link or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    position = shlex.split(sysconfig.get_config_var("CCSHARED") or "")
    arches = shlex.split(os.environ.get("ARCHFLAGS", ""))
    made = target.with_name(f"{target.name}.{os.getpid()}")  # a process may have the old one open
    command = [
        *shlex.split(link),
        *position,
        *arches,
        "-O2",
        *flags,
        f"-I{include}",
        str(SOURCE),
        "-o",
        str(made),
    ]
    with contextlib.suppress(OSError):
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            made.replace(target)
            return True
    made.unlink(missing_ok=True)
    return False


if __name__ == "__main__":
    sys.exit(0 if build() or PURE else "no kernel was built: no C compiler, or no headers of this Python")
