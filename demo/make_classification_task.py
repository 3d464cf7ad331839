"""Writes train.tsv, dev.tsv and test.tsv of a labeled task made from the demonstration's corpus.

Its labels are described in demo/labeled_task.py.

    python -m demo.make_classification_task --corpus_dir=CORPUS --output_dir=TASK
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import os

import tensorflow as tf

from data_pipeline.files import atomic_files
from demo import corpus
from demo.labeled_task import Sizes, first_task

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string("corpus_dir", None, "Folder that collect_docstrings wrote.", required=True)
    flags.DEFINE_string("output_dir", None, "Folder for train, dev and test.tsv.", required=True)
    flags.group("Task")
    flags.DEFINE_integer(
        "num_classes", 8, "Largest number of labels; those with most text are used.", 2
    )
    flags.DEFINE_integer("train_per_class", 1000, "Largest number of training rows of a label.", 1)
    flags.DEFINE_integer(
        "eval_per_class", 120, "Largest number of rows of a label in dev, and in test.", 1
    )
    flags.DEFINE_integer("seed", 0, "Choice and order of the rows.")


def main() -> None:
    """Writes the task, then prints its labels, sizes and the accuracy of a constant guess."""
    documents = corpus.read(FLAGS.corpus_dir)
    manifest = atomic_files.read_json(os.path.join(FLAGS.corpus_dir, "manifest.json"))
    sizes = Sizes(FLAGS.num_classes, FLAGS.train_per_class, FLAGS.eval_per_class)
    kind, task = first_task(documents, manifest["corpus"] is not None, sizes, FLAGS.seed)
    tf.io.gfile.makedirs(FLAGS.output_dir)
    for split, rows in task.items():
        lines = ["label\ttext", *(f"{label}\t{text}" for label, text in rows), ""]
        path = os.path.join(FLAGS.output_dir, f"{split}.tsv")
        atomic_files.write_bytes(path, "\n".join(lines).encode("utf-8"))
    labels = sorted({label for label, _ in task["train"]})
    counts = {split: len(rows) for split, rows in task.items()}
    majority = 1 / len(labels)  # All labels have equally many rows.
    summary = {"kind": "task", "label": kind, "labels": labels, "rows": counts, "seed": FLAGS.seed}
    atomic_files.write_json(
        os.path.join(FLAGS.output_dir, "manifest.json"), {**summary, "majority": majority}
    )
    print(f"The label is the sentence's {kind}: {', '.join(labels)}.")
    print(f"Rows: {', '.join(f'{split} {count}' for split, count in counts.items())}.")
    print(f"Majority baseline: accuracy {majority:.3f}.")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
