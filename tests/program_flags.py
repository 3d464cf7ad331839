"""The programs of the project, and the flags that each of them defines."""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path

from absl.flags import Flag

from data_pipeline.command_line import flags
from tests.conftest import flags_of_its_own

ROOT = Path(__file__).parents[1]
PACKAGES = ("albert_tf", "data_pipeline", "export", "demo", "benchmarks", "experiments")
PROGRAMS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if re.search(r"^    run_binary\(", path.read_text(encoding="utf-8"), re.M)
)


@functools.cache
def flags_of(program: str) -> dict[str, Flag]:
    """The flags of a program by name; they are not defined any more."""
    module = importlib.import_module(program)
    with flags_of_its_own():
        flags.group("")
        module.define_flags()
        return {flag.name: flag for flag in flags.defined()}
