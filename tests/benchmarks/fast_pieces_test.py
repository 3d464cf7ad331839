"""Pieces of layers/fast are left out one at a time, by real workers on a tiny case."""

from __future__ import annotations

import subprocess

from benchmarks import fast_pieces
from benchmarks.processes import ROOT, Measurement


def test_a_row_compares_with_all_pieces_there():
    measured = {
        "now": Measurement(2.0, 100),
        "gelu": Measurement(2.5, 130),
        "streams": Measurement(1.9, 90),
    }
    rows = fast_pieces.rows_of("a case", measured)
    assert [row["without"] for row in rows] == ["gelu", "streams"]
    assert [row["time over now"] for row in rows] == [1.25, 0.95]
    assert [row["memory over now"] for row in rows] == [1.3, 0.9]


# In a process of its own, since a piece that is left out stays so.
LEFT_OUT = """
from albert_tf.layers.fast import operations
from albert_tf.layers.blocks import Operations
from benchmarks.left_out import PIECES

training = operations.TrainingOperations
attend = training.attend
PIECES["layer_norm"]()
assert training.layer_norm is Operations.layer_norm
assert training.attend is attend
for piece in PIECES.values():
    piece()
assert training.attend is Operations.attend
"""


def test_what_is_left_out(quick_python):
    subprocess.run([quick_python, "-c", LEFT_OUT], cwd=ROOT, check=True)
