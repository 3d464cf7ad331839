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


def test_all_forms_are_called_in_turn(monkeypatch):
    clock, asked = iter(range(1000)), []
    monkeypatch.setattr(precision.time, "process_time", lambda: next(clock) / 1e3)

    def call(number):
        return lambda **inputs: asked.append((number, tuple(inputs["input_mask"].shape)))

    rows: list[dict] = [{}, {}]
    precision.add_times(rows, [call(0), call(1)], 2)
    assert asked == [
        (number, shape) for shape in precision.SHAPES for _ in range(3) for number in (0, 1)
    ]
    assert rows == [{"ms, 1 x 32": "1.0", "ms, 8 x 64": "1.0"}] * 2
