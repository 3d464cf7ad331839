"""This project's models without a piece of layers/fast. Arguments: packed or padded; the piece."""

import sys

from benchmarks.left_out import PIECES

PIECES[sys.argv[2]]()

import ours  # noqa: E402, F401  The import starts serving.
