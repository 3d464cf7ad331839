"""The common parts of all programs: flags, `--help`, and errors in one line."""

from data_pipeline.command_line import flags
from data_pipeline.command_line.program import run_binary

__all__ = ["flags", "run_binary"]
