"""A real browser for tests of pages: Debian's Chromium, driven by Playwright, with nothing that asks the network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser; skips the test where there is none, unless HARNESS_REQUIRE_CHROMIUM is set."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        text = "no Chromium with Playwright here: install the package chromium, and playwright from PyPI"
        if os.environ.get("HARNESS_REQUIRE_CHROMIUM"):
            pytest.fail(text)
        pytest.skip(text)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()
