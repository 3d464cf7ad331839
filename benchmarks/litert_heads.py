"""Every head as a model for LiteRT: its size, and how far its answers are from those of Keras.

    python -m benchmarks.litert_heads --preset=albert-small-en

The encoder has the weights of the preset; heads that it has no weights for are random. Differences
are the largest of any output, logits included, for the built-in request with which every export is
checked.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import os
import tempfile
from pathlib import Path
from typing import Any

from albert_tf import models, pretrained, replaced_tokens, span_models
from albert_tf.checkpoints import native
from benchmarks.tables import print_rows, write_csv
from data_pipeline.tokenizers.base import TokenizerSettings
from export import litert

FLAGS = flags.FLAGS
_WINDOWS = {"doc_stride": 64, "max_query_length": 32}
# Task, and which of two models -> the model, its arguments, and what fine-tuning would write into
# model.json.
HEADS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "classifier": (models.AlbertClassifier, {"num_classes": 3}, {}),
    "regression": (models.AlbertClassifier, {"num_classes": 1}, {"labels": []}),
    "masked_lm": (models.AlbertPretrainer, {}, {}),
    "question_answering, SQuAD 1.1": (span_models.AlbertSpanLabeler, {}, _WINDOWS),
    "question_answering, SQuAD 2.0": (span_models.AlbertSpanLabelerV2, {}, _WINDOWS),
    "multiple_choice": (
        models.AlbertMultipleChoice,
        {},
        {"labels": ["A", "B", "C", "D"], "max_qa_length": 32},
    ),
    "tagging": (models.AlbertTokenClassifier, {"num_classes": 5}, {}),
    "embedding": (models.AlbertSentenceEncoder, {}, {}),
    "replaced_tokens": (replaced_tokens.AlbertReplacedTokenDetector, {}, {}),
    "encoder": (models.AlbertPretrainer, {}, {}),
}


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("preset", "albert-small-en", "Weights of the encoder.")
    flags.DEFINE_integer("max_seq_length", 128, "Longest sequence.", lower_bound=1)
    flags.DEFINE_string("output", None, "Folder for litert_heads.csv; by default only printed.")


def measure(head: str, folder: str) -> dict[str, object]:
    """A row of the table."""
    model_class, arguments, metadata = HEADS[head]
    task = head.partition(",")[0]
    model = pretrained.from_preset(FLAGS.preset, model_class, **arguments)
    model_dir = os.path.join(folder, "model", head)
    metadata = {"max_seq_length": FLAGS.max_seq_length, **metadata}
    vocabulary = pretrained.preset_vocabulary(FLAGS.preset)
    native.save(model, model_dir, metadata, vocabulary, vars(TokenizerSettings()))
    row: dict[str, object] = {"task": head}
    for precision in litert.PRECISIONS:
        found = litert.export_litert(
            model_dir, os.path.join(folder, f"{head}_{precision}"), task, precision
        )
        row[f"MB, {precision}"] = f"{found.model_bytes / 1e6:.1f}"
        row[f"difference, {precision}"] = f"{max(found.comparison.differences.values()):.1e}"
    return row


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(head, folder) for head in HEADS]
    print_rows(rows)
    if FLAGS.output:
        write_csv(Path(FLAGS.output) / "litert_heads.csv", rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
