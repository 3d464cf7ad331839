"""Runs programs of this project in experiments, one after the other."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import time
from pathlib import Path

from albert_tf.training import run_folder
from benchmarks.processes import environment_variables
from data_pipeline.errors import UserError


def run_program(module: str, *arguments: str, log: Path | None = None) -> None:
    """Runs a program to its end; its messages go to the screen, or are appended to a file.

    Raises:
      UserError: it failed.
    """
    with open(log, "a", encoding="utf-8") if log else contextlib.nullcontext() as messages:
        print(f"$ {shown(module, *arguments)}", file=messages, flush=True)
        ended = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env=environment_variables(),
            stdout=messages,
            stderr=messages,
        )
    if ended.returncode:
        where = "above"
        if log:
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1]
            where = f"{log}. {last}"
        raise UserError(
            f"{module} ended with code {ended.returncode}; start this command again to go on. "
            f"See {where}"
        )


def spent(began: float) -> dict[str, str]:
    """Columns for a finished run: minutes since `began` (a time.monotonic()), and the commit."""
    minutes = f"{(time.monotonic() - began) / 60:.1f}"
    return {"minutes": minutes, "commit": run_folder.environment().get("git_revision", "")[:12]}


def shown(module: str, *arguments: str) -> str:
    """A program with its flags as a shell command."""
    return f"python -m {shlex.join((module, *arguments))}"
