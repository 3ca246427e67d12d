"""A real headless browser: Chromium, as the system has it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


def program(*names: str, package: str) -> str:
    """Where a program of the system is. Without it the test is skipped by name, and fails where everything has to be tested."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        words = f"{names[0]} is not installed: the Debian package {package} has it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(words)
    return found


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser of playwright's."""
    path = program("chromium", "chromium-browser", "google-chrome", package="chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
