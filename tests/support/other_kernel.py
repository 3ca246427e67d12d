"""Runs pytest with the kernel that the variable KERNEL names: `python -m tests.support.other_kernel` and pytest's arguments."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

NAME = "graphstore.core.read._kernel"

if __name__ == "__main__":
    spec = spec_from_file_location(NAME, os.environ["KERNEL"])
    assert spec is not None and spec.loader is not None
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])

    import pytest

    from graphstore.core.read import kernel

    assert kernel.node is not None and kernel.node.__self__ is sys.modules[NAME]  # type: ignore[attr-defined]
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
