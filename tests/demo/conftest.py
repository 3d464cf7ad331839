"""Invented packages whose docstrings are plenty, and the programs as a user starts them."""

import random
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = [
    "array",
    "value",
    "column",
    "matrix",
    "index",
    "window",
    "folder",
    "signal",
    "color",
    "number",
    "weight",
    "vector",
    "result",
    "row",
    "frame",
    "letter",
    "token",
    "border",
    "sample",
    "region",
    "object",
    "method",
    "reader",
    "writer",
    "handle",
    "buffer",
]


def invented_sentences(rng: random.Random, count: int) -> list[str]:
    return [
        f"{' '.join(rng.choices(WORDS, k=rng.randint(5, 9))).capitalize()}." for _ in range(count)
    ]


@pytest.fixture
def site_packages(tmp_path) -> Path:
    """A folder of packages: alpha and beta with 20 modules each, and a module on its own."""
    root = tmp_path / "site-packages"
    rng = random.Random(3)
    for package in ("alpha", "beta"):
        (root / package / "tests").mkdir(parents=True)
        (root / package / "tests" / "test_it.py").write_text('"""Nobody reads these tests here."""')
        for module in range(20):
            own = " ".join(
                [*invented_sentences(rng, 14), f"See {package.capitalize()}Reader for it."]
            )
            text = f'"""{own}"""\n\nraise RuntimeError("imported")\n'
            (root / package / f"m{module}.py").write_text(text)
    (root / "alpha" / "__init__.py").write_text('"""Only one sentence here."""')
    (root / "broken.py").write_text("def broken(:\n")
    (root / "single.py").write_text(
        '"""The first sentence of three. The second one of three! Is this third one a question?"""'
    )
    return root


@pytest.fixture
def run(quick_python):
    """Runs a program of the demonstration; gives the finished process."""

    def run(module: str, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [quick_python, "-m", f"demo.{module}", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run
