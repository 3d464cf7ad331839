"""Overfits a tiny model to 64 real examples of every task, and as a control to shuffled labels.

    python -m experiments.overfit --data_dir=data --vocab_file=spiece.model --output=overfit

Each task is trained on real files by a command of its own. A second command, in another process,
predicts the same examples in another order. scikit-learn, scipy and the workers' own SQuAD F1 score
the files that it writes, without any code of this project. The same is repeated with shuffled
labels, and scored against the true ones. --data_dir has the folders glue, squad, race, superglue,
sick and wnut17; a task without files is left out. AX, which has no training set, is predicted by
the MNLI models, which must be in --output from the same or an earlier command.
"""

from __future__ import annotations

import collections
import csv
import json
import random
from pathlib import Path
from typing import Any

from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from albert_tf.config import AlbertConfig
from benchmarks.finetuning_files import Record
from benchmarks.tables import chosen, print_rows, write_csv
from benchmarks.workers.finetuning_data import text_f1
from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.overfit_tasks import REAL_TASKS, RealTask, in_order, records_of
from experiments.programs import run_program

FLAGS = flags.FLAGS
_BATCH = 16
_OWN_FLAGS = {
    "tsv": ["--pair_column=text2"],
    "regression": ["--pair_column=text2", "--label_column=number"],
}


def write_splits(real: RealTask, folder: Path, splits: dict[str, list[Record]]) -> list[str]:
    """Writes the files of a task; returns the flags that name them."""
    named = []
    for split, records in splits.items():
        path = folder / (real.copy.format(split=split) or f"{split}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        real.layout.write(records, path)
        if not real.copy:
            named.append(f"--{split}_file={path}")
    return named or [f"--data_dir={folder}"]


def predicted(real: RealTask, run: Path) -> list[Any]:
    """The predictions of a run's folder, in the order of their file."""
    (path,) = [
        path
        for path in (run / "predictions").iterdir()
        if path.suffix in (".tsv", ".conll") or path.name.endswith("_predictions.json")
        if "nbest" not in path.name
    ]
    text = path.read_text(encoding="utf-8")
    if real.score == "f1":
        return list(json.loads(text).values())
    if real.task == "tagging":
        return [line.split("\t")[-2] for line in text.splitlines() if line]
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [row["prediction"] for row in rows]


def score(real: RealTask, right: list[Any], answers: list[Any]) -> float:
    """The score of answers, where 1 is perfect."""
    if len(right) != len(answers):
        raise ValueError(f"{real.task}: {len(answers)} answers to {len(right)} examples")
    if real.score == "f1":
        each = [max(text_f1(a, text) for text in texts or [""]) for texts, a in zip(right, answers)]
        return sum(each) / len(each)
    if real.score == "pearson":
        return float(pearsonr([float(v) for v in right], [float(v) for v in answers])[0])
    if real.score == "tags":
        kinds = sorted(set(right) - {"O"})
        return float(f1_score(right, answers, labels=kinds, average="micro"))
    function = matthews_corrcoef if real.score == "matthews" else accuracy_score
    return float(function(right, answers))


def by_chance(real: RealTask, right: list[Any]) -> float | None:
    """The expected score of the true labels in random order; None for spans and tags."""
    if real.score in ("f1", "tags"):
        return None
    if real.score != "accuracy":
        return 0.0
    return sum((n / len(right)) ** 2 for n in collections.Counter(right).values())


def learn(real: RealTask, shuffle: bool, config_file: Path, output: Path) -> float:
    """Trains, predicts in another process and in another order, and returns the score."""
    ending = "-shuffled" if shuffle else ""
    folder = output / f"{real.task}{ending}"
    run = output / f"{real.trained_by or real.task}{ending}" / "run"
    records = records_of(real, Path(FLAGS.data_dir), FLAGS.examples)
    draw, other = random.Random(0), list(records)
    if not real.trained_by:
        learned = real.labels.shuffled(records, draw) if shuffle else records
        train(real, learned, config_file, folder)
    draw.shuffle(other)
    other = in_order(real, other)
    if not run.exists():
        raise UserError(
            f"{real.task} is answered by the model of {real.trained_by}, which {run} should hold; "
            f"run --tasks={real.trained_by} into this --output first."
        )
    for path in (run / "predictions").iterdir():
        path.unlink()  # Predictions from the evaluation during training.
    split = real.dev_splits[0] if real.copy else "predict"
    asked = write_splits(real, folder / "predict", {split: other})
    splits = [f"--splits={split}"] if real.copy else []
    run_program(
        "albert_tf.run_finetuning",
        *(*task_flags(real, run), *asked, *splits, "--mode=predict"),
        log=folder / "log",
    )
    return score(real, real.labels.values(other), predicted(real, run))


def train(real: RealTask, records: list[Record], config_file: Path, folder: Path) -> None:
    """Trains a tiny model from scratch in folder/run, with records as training and dev set."""
    splits = {"train": records, **dict.fromkeys(real.dev_splits, records)}
    given = write_splits(real, folder / "train", splits)
    run_program(
        "albert_tf.run_finetuning",
        *(*task_flags(real, folder / "run"), *given),
        *(f"--config_file={config_file}", f"--vocab_file={FLAGS.vocab_file}"),
        *(f"--train_batch_size={_BATCH}", f"--num_train_steps={FLAGS.steps}"),
        *(f"--learning_rate={FLAGS.learning_rate}", "--classifier_dropout=0"),
        "--fast=off",  # Compiling would take longer than training such a model.
        log=folder / "log",
    )


def task_flags(real: RealTask, run: Path) -> list[str]:
    """Flags for all commands of a task."""
    own = [*_OWN_FLAGS.get(real.task, []), f"--max_seq_length={real.max_seq_length}"]
    return [f"--task={real.task}", *own, f"--output_dir={run}"]


def new_row(real: RealTask) -> dict[str, object]:
    """The row of a task before training."""
    records = records_of(real, Path(FLAGS.data_dir), FLAGS.examples)
    chance = by_chance(real, real.labels.values(records))
    return {
        "task": real.task,
        "source": real.source,
        "which": real.note,
        "examples": sum(map(real.layout.size, records)),
        "score": real.score,
        "learned": "",
        "labels shuffled": "",
        "by chance": "" if chance is None else round(chance, 2),
    }


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Overfitting")
    flags.DEFINE_string("data_dir", None, "Folder of the data of all tasks.", required=True)
    flags.DEFINE_string("vocab_file", None, "Vocabulary of the model.", required=True)
    flags.DEFINE_string("output", "benchmark_out", "Folder for overfit.csv and the runs.")
    flags.DEFINE_string("tasks", "", "Run the tasks whose name matches this pattern.")
    flags.DEFINE_integer("examples", 64, "Examples of each task.", lower_bound=2)
    flags.DEFINE_integer("steps", 250, "Updates of each run.", lower_bound=1)
    flags.DEFINE_float("learning_rate", 1e-3, "Highest rate.")


def main() -> None:
    output = Path(FLAGS.output)
    output.mkdir(parents=True, exist_ok=True)
    config = AlbertConfig(
        vocab_size=load_tokenizer(FLAGS.vocab_file).vocab_size,
        embedding_size=64,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        initializer_range=0.1,  # Learns in fewer updates than with 0.02.
    )
    config_file = output / "albert_config.json"
    config.to_json_file(str(config_file))
    rows: dict[str, dict[str, object]] = {}
    for task, real in chosen("tasks", FLAGS.tasks, REAL_TASKS).items():
        if (Path(FLAGS.data_dir) / real.source).exists():
            rows[task] = new_row(real)
        else:
            print(f"{task} is left out: {FLAGS.data_dir} has no {real.source}.")
    for column, shuffle in (("learned", False), ("labels shuffled", True)):
        for task, row in rows.items():
            row[column] = round(learn(REAL_TASKS[task], shuffle, config_file, output), 3)
            print(f"{task}, {column}: {row[column]}", flush=True)
            write_csv(output / "overfit.csv", list(rows.values()))  # In case of an interruption.
    print_rows(list(rows.values()))
    print(f"Wrote {output}/overfit.csv")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
