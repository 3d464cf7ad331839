"""The flags of both programs of export, and what they print about precision."""

import pytest

from data_pipeline.errors import UserError
from export import flags as export_flags
from export.comparison import Accuracy, Comparison, EvalSettings
from export.flags import FLAGS, comparison_lines, scored_on


def test_a_limit_needs_data_to_measure_on(new_flags):
    with new_flags():
        export_flags.define_model_flags(["classifier"], ["float32", "int8"])
        required = ["program", "--model_dir=m", "--task=classifier"]
        FLAGS(required)
        assert scored_on() is None
        FLAGS([*required, "--eval_file=dev.tsv", "--max_accuracy_loss=0.01"])
        assert scored_on() == EvalSettings("dev.tsv", 0.01)
        FLAGS.eval_file = None
        with pytest.raises(UserError, match="--max_accuracy_loss=0.01 needs --eval_file"):
            scored_on()


def test_lines_about_precision():
    exact = Comparison("float32", 8_000_000, {})
    assert comparison_lines(exact, 8_100_000) == [
        "precision float32: 8.10 MB; weights in float32: 8.00 MB",
        "accuracy: not measured, which needs --eval_file",
    ]
    accuracy = Accuracy("f1", 872, "dev.tsv", 0.91, 0.9)
    found = Comparison("int8", 8_000_000, {"tokens.logits": 0.02, "tokens.x": 1e-3}, accuracy)
    assert comparison_lines(found, 2_100_000) == [
        "precision int8: 2.10 MB; weights in float32: 8.00 MB",
        "largest difference from float32: 2.0e-02, of tokens.logits",
        "f1 on 872 examples: 0.9000, in float32 0.9100",
    ]
