"""The site of `make docs`: it is built without a warning, and has all that user code imports."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docstrings_test import HOMES

ROOT = Path(__file__).parents[1]
NOT_OURS = {"albert_tf.keras"}


@pytest.mark.table
def test_the_site_is_built_and_its_reference_is_complete():
    install = [ROOT / "scripts/install.sh", sys.executable, ".venv-docs", "requirements-docs.txt"]
    installed = subprocess.run(install, cwd=ROOT, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"NO SITE WAS BUILT, its packages cannot be installed: {installed.stderr}")
    built = subprocess.run(
        ["make", "--no-print-directory", "docs", f"PYTHON={sys.executable}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert (built.stdout.splitlines()[-1:], built.stderr) == (["build/site/index.html"], "")
    pages = (ROOT / "build/site/docs/reference").glob("*.html")
    described = {name for page in pages for name in re.findall(r'id="([\w.]+)"', page.read_text())}
    names = {f"{home}.{name}" for home in HOMES for name in importlib.import_module(home).__all__}
    assert names - described == NOT_OURS
