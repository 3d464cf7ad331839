"""The start and end of all programs: flags, `--help`, errors in one line, a quiet TensorFlow.

A program imports this package before anything else, because TensorFlow writes its first notes while
it is imported.
"""

import sys

from data_pipeline.command_line import flags, quiet
from data_pipeline.command_line.program import interrupted_while_imported, run_binary

__all__ = ["flags", "run_binary"]

quiet.watch()
sys.excepthook = interrupted_while_imported
