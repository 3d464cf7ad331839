"""The table of heads for LiteRT: real models of the weights in this package, known exports."""

from types import SimpleNamespace

import pytest

from albert_tf.checkpoints import native
from benchmarks import litert_heads
from export import litert
from export.comparison import Comparison
from export.model_folder import model_kind
from export.tasks import check_task

FLAGS = SimpleNamespace(preset="albert-small-en", max_seq_length=32)


def test_every_task_has_a_head():
    tasks = dict.fromkeys(head.partition(",")[0] for head in litert_heads.HEADS)
    assert tuple(tasks) == litert.LITERT_TASKS


@pytest.mark.parametrize(
    ("head", "task"),
    [
        ("regression", "regression"),
        ("question_answering, SQuAD 1.1", "question_answering"),
        ("question_answering, SQuAD 2.0", "question_answering"),
        ("multiple_choice", "multiple_choice"),
    ],
)
def test_a_row(head, task, tmp_path, monkeypatch):
    sizes = dict(zip(litert.PRECISIONS, (4_000_000, 2_000_000, 1_000_000)))

    def export_litert(model_dir, output_dir, asked, precision):
        metadata = native.read_metadata(model_dir)
        assert asked == task and metadata["max_seq_length"] == 32
        check_task(task, model_kind(metadata), model_dir, litert.LITERT_TASKS)
        compared = Comparison(precision, 4_000_000, {"logits": 0.25, "probabilities": 0.02})
        return litert.LiteRTExport(output_dir, {}, {}, sizes[precision], compared)

    monkeypatch.setattr(litert, "export_litert", export_litert)
    monkeypatch.setattr(litert_heads, "FLAGS", FLAGS)
    row = litert_heads.measure(head, str(tmp_path))
    assert row.pop("task") == head
    assert list(row.values()) == ["4.0", "2.5e-01", "2.0", "2.5e-01", "1.0", "2.5e-01"]
