"""Evaluates weights on dev sets of GLUE, RACE and SQuAD, against others, scratch and baselines.

    python -m experiments.weights.measure --data_dir=glue --document=docs/weights.md

Each start is fine-tuned with every learning rate and number of epochs of the search; the best
combination on the dev set is repeated with other seeds. "scratch" is the same network and search
with random weights, "others" are the weights of --others. Finished runs are read from --work_dir,
so an interrupted command can be continued.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from albert_tf.pretrained.loading import preset_vocabulary
from albert_tf.text.models import SentenceEmbedder
from albert_tf.training import DeviceSettings, InitialModel
from albert_tf.training.devices import Devices, prepare_devices
from albert_tf.training.settings import PRECISIONS
from benchmarks.tables import write_csv
from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from experiments.tables import markdown_table, replace_table
from experiments.weights import baselines
from experiments.weights.intervals import median_difference, paired_interval
from experiments.weights.runs import Plan, train_all
from experiments.weights.tasks import WEIGHTS_TASKS, WeightsTask

FLAGS = flags.FLAGS
_GLUE = ("cola", "sst-2", "mrpc", "sts-b", "rte", "wnli")
_STARTS = ("shipped", "others", "scratch")
_PARTS = (*_STARTS, "baselines", "embeddings")


def define_flags() -> None:
    """Flags of this program."""
    flags.group("What is measured")
    flags.DEFINE_string(
        "data_dir", None, "GLUE's root folder, or that of RACE or SQuAD 1.1.", required=True
    )
    flags.DEFINE_string("weights", "albert-small-en", "Preset or folder of the shipped weights.")
    flags.DEFINE_string("others", None, "Weights to compare with, measured as `others`.")
    flags.DEFINE_list("tasks", list(_GLUE), f"Some of: {', '.join(WEIGHTS_TASKS)}.")
    flags.DEFINE_list("parts", list(_PARTS), f"Some of: {', '.join(_PARTS)}.")
    flags.group("Fine-tuning")
    flags.DEFINE_list(
        "learning_rates", ["0.00005", "0.0001", "0.0002"], "Learning rates that the search tries."
    )
    flags.DEFINE_list("epochs", ["3", "6"], "Numbers of epochs that the search tries.")
    flags.DEFINE_integer("seeds", 5, "Runs with the settings that the search found.", 1, 100)
    flags.DEFINE_integer(
        "max_train_examples", 0, "Examples of a task to train on, drawn once; 0: all.", 0
    )
    flags.DEFINE_integer("train_batch_size", 32, "Number of examples in an update.", 1)
    flags.DEFINE_integer("max_seq_length", 128, "Number of tokens in a row.", 8)
    flags.DEFINE_enum("precision", "float32", PRECISIONS, "Precision of the arithmetic.")
    flags.group("Output")
    flags.DEFINE_string("work_dir", "benchmark_out/weights", "Folder of runs and their answers.")
    flags.DEFINE_string("document", None, "Document whose tables are replaced, such as the docs'.")
    flags.DEFINE_string("table", "glue", "Name of the document's table of tasks.")
    flags.DEFINE_string("scores", None, "CSV file with the score of every run.")


def main() -> None:
    for name, known in {"tasks": WEIGHTS_TASKS, "parts": _PARTS}.items():
        if not FLAGS[name].value or not set(FLAGS[name].value) <= set(known):
            given = ",".join(FLAGS[name].value)
            raise UserError(f"--{name}={given}: expected some of {', '.join(known)}.")
    if FLAGS.scores and not set(_STARTS) & set(FLAGS.parts):
        raise UserError(f"--scores={FLAGS.scores} needs one of {', '.join(_STARTS)} in --parts.")
    if "baselines" in FLAGS.parts and (others := set(FLAGS.tasks) - set(_GLUE)):
        raise UserError(
            f"--parts=baselines is for GLUE, not for {', '.join(others)}. Leave it out."
        )
    devices = prepare_devices(DeviceSettings(precision=FLAGS.precision))
    rows: list[dict[str, str]] = []
    scores: list[dict[str, object]] = []
    for name in FLAGS.tasks:
        row, of_task = task_row(WEIGHTS_TASKS[name], devices)
        rows.append(row)
        scores += of_task
        if FLAGS.scores:
            write_csv(Path(FLAGS.scores), scores)
    tables = {FLAGS.table: markdown_table(rows)}
    if "embeddings" in FLAGS.parts:
        tables["embeddings"] = markdown_table(embedding_rows())
    for name, table in tables.items():
        print(f"\n{name}\n\n{table}")
        if FLAGS.document:
            replace_table(Path(FLAGS.document), name, table)


def numbers(name: str) -> list[float]:
    """The numbers of a flag."""
    try:
        return [float(each) for each in FLAGS[name].value]
    except ValueError as error:
        raise UserError(f"--{name}={','.join(FLAGS[name].value)}: {error}.") from None


def task_row(task: WeightsTask, devices: Devices) -> tuple[dict[str, str], list[dict[str, object]]]:
    """The row of a task (medians, and the lead of the shipped weights over each other start), and
    the scores of its runs.
    """
    splits = {
        "train": task.read(FLAGS.data_dir, "train", FLAGS.max_train_examples),
        "dev": task.read(FLAGS.data_dir, "dev"),
    }
    labels = task.gold(splits["dev"])
    plan = Plan(
        numbers("learning_rates"),
        numbers("epochs"),
        FLAGS.seeds,
        FLAGS.train_batch_size,
        FLAGS.max_seq_length,
    )
    starts = {
        "shipped": InitialModel(init_checkpoint=FLAGS.weights),
        **({"others": InitialModel(init_checkpoint=FLAGS.others)} if FLAGS.others else {}),
        "scratch": InitialModel(preset=FLAGS.weights),
    }
    answers, chosen, scores = {}, {}, []
    for name, start in starts.items():
        if name in FLAGS.parts:
            folder = Path(FLAGS.work_dir) / task.name / name
            vocab_file = preset_vocabulary(FLAGS.weights)
            found = train_all(task, start, vocab_file, splits, plan, folder, devices)
            answers[name], chosen[name] = found.predictions, found.chosen
            scores += [
                {"task": task.name, "start": name, "chosen": found.chosen, "seed": seed}
                | {"score": task.score_name, "value": round(score, 2)}
                for seed, score in enumerate(found.scores)
            ]
    if "baselines" in FLAGS.parts:
        answers["majority"] = baselines.majority(task, splits["train"], splits["dev"])[None]
        for parts in baselines.BAGS:
            answers[parts] = baselines.bag(task, splits["train"], splits["dev"], parts)[None]
    row = {
        "task, score": f"{task.name}, {task.score_name}",
        "train, dev": f"{len(splits['train']):,}, {len(labels):,}",
    }
    for name, runs in answers.items():
        row[name] = f"{np.median([task.score(labels, run) for run in runs]):.1f}"
    for name in ("others", "scratch", "bag of words"):
        if {"shipped", name} <= answers.keys():
            row[f"ahead of {name}"] = _ahead(task, labels, answers["shipped"], answers[name])
    row["BERT-Tiny (test)"] = "" if task.bert_tiny is None else f"{task.bert_tiny:.1f}"
    print(", ".join(f"{name}: {value}" for name, value in {**row, **chosen}.items()), flush=True)
    return row, scores


def _ahead(task: WeightsTask, labels: np.ndarray, left: np.ndarray, right: np.ndarray) -> str:
    """The difference of medians with its interval: "+5.1 (2.0 to 8.3)"."""
    difference = median_difference(task.score, labels, left, right)
    low, high = paired_interval(task.score, labels, left, right)
    return f"{difference:+.1f} ({low:.1f} to {high:.1f})"


def embedding_rows() -> list[dict[str, str]]:
    """Rows for similarities of STS-B's dev pairs without fine-tuning."""
    task = WEIGHTS_TASKS["sts-b"]
    dev = task.read(FLAGS.data_dir, "dev")
    labels = task.gold(dev)
    first, second = ([getattr(one, text) for one in dev.examples] for text in ("text_a", "text_b"))
    found = {
        f"{FLAGS.weights}, mean of the last layer": SentenceEmbedder(FLAGS.weights).similarity(
            first, second
        ),
    }
    found |= {parts: baselines.overlap(dev, parts) for parts in baselines.OVERLAPS}
    return [
        {"cosine of": name, "Spearman on STS-B dev": f"{task.score(labels, values):.1f}"}
        for name, values in found.items()
    ]


if __name__ == "__main__":
    define_flags()
    run_binary(main)
