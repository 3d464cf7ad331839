"""The table of precisions, from a known export and known calls."""

from benchmarks import precision
from export.comparison import Accuracy, Comparison


def test_a_row_has_size_and_score():
    accuracy = Accuracy("accuracy", 872, "dev.tsv", 0.91, 0.905)
    compared = Comparison("int8", 8_000_000, {"tokens.logits": 0.02, "tokens.x": 1e-3}, accuracy)
    assert precision.row("LiteRT", 2_000_000, compared) == {
        "form": "LiteRT",
        "precision": "int8",
        "MB": "2.00",
        "of float32": "0.25",
        "difference": "2.0e-02",
        "accuracy": "0.9050",
        "examples": 872,
    }
