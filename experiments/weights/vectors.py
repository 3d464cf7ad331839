"""Evaluates sentence vectors before and after training: the table in docs/finetuning.md.

python -m experiments.weights.vectors --data_dir=glue --sick=sick/SICK_test_annotated.txt \
    --questions=glue/QQP/dev.tsv --output_dir=work/vectors
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from albert_tf.finetuning.tasks.pairs import ranks
from albert_tf.metrics.correlation import spearman
from albert_tf.text.models import SentenceEmbedder
from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files
from experiments.programs import run_program
from experiments.tables import markdown_table, replace_table
from experiments.weights.tasks import WEIGHTS_TASKS

FLAGS = flags.FLAGS
Pairs: TypeAlias = Sequence[Sequence[str]]  # text, pair and, if there is one, label.
_LENGTH = 64
_SENTENCES, _FOUND, _TRAINED = 5000, 1000, 2500


def define_flags() -> None:
    """Flags of this program."""
    flags.group("What is measured")
    flags.DEFINE_string("weights", "albert-small-en", "Weights: a name, a folder or a checkpoint.")
    flags.DEFINE_string("data_dir", None, "GLUE's root folder, with STS-B.", required=True)
    flags.DEFINE_string("sick", None, "SICK's test file.", required=True)
    flags.DEFINE_string("questions", None, "QQP's dev file, or a part of it.", required=True)
    flags.group("Output")
    flags.DEFINE_string("output_dir", None, "Folder of files and runs.", required=True)
    flags.DEFINE_string("document", None, "Document whose table `vectors` is replaced.")


def main() -> None:
    train, dev = (stsb(split) for split in ("train", "dev"))
    found, others = questions()
    tests = {"STS-B dev, Spearman": dev, "SICK test, Spearman": sick()}
    sentences = list(dict.fromkeys(text for pair in train for text in pair[:2]))[:_SENTENCES]
    runs = {
        f"{len(sentences):,} sentences of STS-B's training set without labels, one epoch, "
        "rate 5e-5, batches of 64": trained(
            *("sentences", [[each] for each in sentences], dev, "--label_scale=5"),
            *("--num_train_epochs=1", "--learning_rate=5e-5", "--train_batch_size=64"),
        ),
        f"{len(train):,} labeled pairs of STS-B, two epochs, rate 1e-4, batches of 32": trained(
            *("labels", train, dev, "--label_scale=5"),
            *("--num_train_epochs=2", "--learning_rate=1e-4", "--train_batch_size=32"),
        ),
        f"{len(others):,} other pairs of QQP, all duplicates, one epoch, rate 1e-4, "
        "batches of 64": trained(
            *("questions", others, found),
            *("--num_train_epochs=1", "--learning_rate=1e-4", "--train_batch_size=64"),
        ),
    }
    rows = []
    for name, folder in {"nothing": FLAGS.weights, **runs}.items():
        embedder = SentenceEmbedder(folder, max_seq_length=_LENGTH)
        row = {"trained on": name}
        for test, pairs in tests.items():
            row[test] = f"{100 * (spearman(*scores(embedder, pairs)) or 0):.1f}"
        row["questions: found, reciprocal rank"] = retrieval(embedder, found)
        rows.append(row)
    table = markdown_table(rows)
    print(f"\n{table}")
    if FLAGS.document:
        replace_table(Path(FLAGS.document), "vectors", table)


def stsb(split: str) -> Pairs:
    """Pairs of STS-B with labels from 0 to 5."""
    examples = WEIGHTS_TASKS["sts-b"].read(FLAGS.data_dir, split).examples
    return [(each.text_a, each.text_b or "", f"{each.label}") for each in examples]


def sick() -> Pairs:
    """Pairs of SICK with relatedness from 1 to 5."""
    with open(FLAGS.sick, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = ("sentence_A", "sentence_B", "relatedness_score")
    if not rows or not set(names) <= rows[0].keys():
        raise UserError(
            f"--sick={FLAGS.sick} has no columns {', '.join(names)}. Give SICK_test_annotated.txt."
        )
    return [tuple(row[name] for name in names) for row in rows]


def questions() -> tuple[Pairs, Pairs]:
    """Duplicates of QQP for retrieval, and others to train on that share no question with them."""
    lines = Path(FLAGS.questions).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    duplicates = [row[3:5] for row in rows if len(row) == 6 and row[5] == "1"]
    found = duplicates[:_FOUND]
    seen = {text for pair in found for text in pair}
    others = [pair for pair in duplicates[_FOUND:] if not seen.intersection(pair)][:_TRAINED]
    if len(others) < _TRAINED:
        raise UserError(
            f"--questions={FLAGS.questions} has {len(duplicates):,} duplicates, but "
            f"{_FOUND + _TRAINED:,} without a question in common are needed. Give QQP's dev.tsv."
        )
    return found, others


def trained(name: str, pairs: Pairs, dev: Pairs, *settings: str) -> str:
    """The folder of a run's last model. A finished run is not trained again; a run that started
    from other weights is refused.
    """
    folder = Path(FLAGS.output_dir, name)
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in {"train": pairs, "dev": dev}.items():
        header = ("text", "pair", "label")[: len(rows[0])]
        lines = "".join("\t".join(row) + "\n" for row in (header, *rows))
        atomic_files.write_bytes(str(folder / f"{split}.tsv"), lines.encode("utf-8"))
    run_program(
        "albert_tf.run_finetuning",
        *("--task=pairs", f"--init_checkpoint={FLAGS.weights}", f"--max_seq_length={_LENGTH}"),
        *(f"--train_file={folder / 'train.tsv'}", f"--dev_file={folder / 'dev.tsv'}"),
        *(f"--output_dir={folder / 'run'}", *settings),
    )
    return str(folder / "run" / "last_model")


def scores(embedder: SentenceEmbedder, pairs: Pairs) -> tuple[list[float], np.ndarray]:
    """Labels and cosines of pairs."""
    first, second, labels = zip(*pairs)
    return [float(label) for label in labels], embedder.similarity(first, second)


def retrieval(embedder: SentenceEmbedder, pairs: Pairs) -> str:
    """The share of texts whose nearest neighbor is their pair, and the mean reciprocal rank."""
    first, second = (list(texts) for texts in zip(*pairs))
    left, right = (embedder(texts) for texts in (first, second))
    left, right = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (left, right))
    places = ranks(left, right, second)
    return f"{100 * np.mean(places == 1):.1f} %, {100 * np.mean(1 / places):.1f}"


if __name__ == "__main__":
    define_flags()
    run_binary(main)
