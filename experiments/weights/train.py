"""Makes weights in stages: trains, converts to float16, evaluates, and starts the next stage.

    python -m experiments.weights.train --train_text='work/train/*.jsonl' \
        --heldout='work/heldout/*.jsonl' --output_dir=runs/third

A stage is a file of run_pretraining's flags, or NAME.mean, a mean of earlier stages and of `start`,
the weights of --init_checkpoint (see average). If the command is started again, it continues where
it stopped.

runs/third/second_1/run          the run of a stage
runs/third/second_1/weights      its weights in Hugging Face's format and float16
runs/third/second_2.mean/weights the weights of a mean
runs/third/stages.csv            held-out figures and copied words after each stage
runs/third/stages.png            its losses and shares of copied words
"""

from __future__ import annotations

import glob
import time
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from albert_tf.errors import UserError
from albert_tf.pretrained.loading import preset_vocabulary
from albert_tf.pretraining import HeldOut, evaluate_model
from albert_tf.training import DeviceSettings
from albert_tf.training.devices import Devices, prepare_devices
from data_pipeline.command_line import flags, run_binary
from data_pipeline.corpus.blocks import match_files
from experiments.copy_probe import DISTANCES, probe
from experiments.programs import run_program
from experiments.tables import append_row, read_rows

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Stages")
    flags.DEFINE_list(
        "stages",
        ["experiments/weights/stages/second_?.*"],
        "Globs of the files of stages, which are run in the order of their names.",
    )
    flags.DEFINE_string(
        "init_checkpoint",
        "albert-small-en",
        "Weights that the first stage begins with; none: a vocabulary and starting weights are "
        "made from the text.",
    )
    flags.group("Text")
    flags.DEFINE_string("train_text", None, "Text files (globs) to train on.", required=True)
    flags.DEFINE_string(
        "heldout",
        None,
        "Held-out text files, one per domain, which is named after the file.",
        required=True,
    )
    flags.group("Output")
    flags.DEFINE_string("output_dir", None, "Folder of the stages.", required=True)
    flags.DEFINE_list("more_flags", [], "More flags of every stage, as --num_train_steps=10.")


def main() -> None:
    stages = [Path(path) for pattern in FLAGS.stages for path in sorted(glob.glob(pattern))]
    if not stages:
        raise UserError(f"--stages={','.join(FLAGS.stages)} matches no file of a stage.")
    output = Path(FLAGS.output_dir)
    output.mkdir(parents=True, exist_ok=True)
    weights = start = FLAGS.init_checkpoint or starting_weights(output)
    vocabulary = preset_vocabulary(weights)
    heldout = heldout_records(output, vocabulary)
    devices = prepare_devices(DeviceSettings())
    log = output / "stages.csv"
    logged = {row["stage"] for row in read_rows(log)}
    if "start" not in logged:
        add_row(log, {"stage": "start", "minutes": "", **figures(weights, heldout, devices)})
    for stage in stages:
        name = stage.name.removesuffix(".flags")
        made, began = output / name / "weights", time.monotonic()
        if not made.exists():
            if stage.suffix == ".mean":
                average(stage, start, made)
            else:
                pretrain(stage, weights, made)
        if name not in logged:
            # If a stage took several calls, only the time of the last one.
            minutes = round((time.monotonic() - began) / 60, 1)
            values = figures(str(made), heldout, devices)
            add_row(log, {"stage": name, "minutes": minutes, **values})
        weights = str(made)
    draw(read_rows(log), log.with_suffix(".png"))
    print(f"The weights are in {weights}, the figures in {log}.")


def pretrain(stage: Path, weights: str, made: Path) -> None:
    """Trains weights further, and writes the folder of the result."""
    run = made.with_name("run")
    run_program(
        "albert_tf.run_pretraining",
        *(f"--flagfile={stage}", f"--init_checkpoint={weights}"),
        *(f"--train_text={FLAGS.train_text}", f"--output_dir={run}"),
        *FLAGS.more_flags,
    )
    run_program(
        "albert_tf.convert",
        *(f"--input={run / 'model'}", f"--output={made}"),
        *("--format=huggingface", "--dtype=float16"),
    )


def average(stage: Path, start: str, made: Path) -> None:
    """Writes the folder of a mean, such as 0.6*start,0.4*second_1."""
    named = [part.partition("*") for part in stage.read_text(encoding="utf-8").strip().split(",")]
    models = [
        f"{share}*{start if name == 'start' else Path(FLAGS.output_dir, name, 'weights')}"
        for share, _, name in named
    ]
    run_program(
        "experiments.weights.average", f"--models={','.join(models)}", f"--output_dir={made}"
    )


def starting_weights(output: Path) -> str:
    """A folder of starting weights, made from the text with its own vocabulary."""
    vocabulary, records, start = (output / name for name in ("vocabulary", "records", "start"))
    if not start.exists():
        if not vocabulary.exists():
            run_program(
                "data_pipeline.train_vocabulary",
                *(f"--input={FLAGS.train_text}", f"--output_dir={vocabulary}"),
                *("--vocab_size=12000", "--input_sentence_size=1000000"),
            )
        make_records(FLAGS.train_text, str(vocabulary / "spiece.model"), records)
        run_program(
            "albert_tf.make_starting_weights",
            *("--preset=albert-small-en", f"--train_data={records}", f"--output_dir={start}"),
        )
    return str(start)


def make_records(text: str, vocabulary: str, folder: Path) -> None:
    """Makes records of 128 tokens, unless they exist."""
    if not (folder / "manifest.json").exists():
        run_program(
            "data_pipeline.create_pretraining_data",
            *(f"--input={text}", f"--vocab_file={vocabulary}", f"--output_dir={folder}"),
            *("--max_seq_length=128", "--masked_lm_prob=0.15", "--deduplicate"),
        )


def heldout_records(output: Path, vocabulary: str) -> dict[str, str]:
    """Folders of held-out records by domain."""
    folders = {}
    for path in match_files(FLAGS.heldout):
        domain = Path(path).name.split(".")[0]
        folder = output / "heldout" / domain
        make_records(path, vocabulary, folder)
        folders[domain] = str(folder)
    return folders


def figures(weights: str, heldout: dict[str, str], devices: Devices) -> dict[str, Any]:
    """Masked-LM loss and accuracy by domain, and copied words by question and distance."""
    found: dict[str, Any] = {}
    for domain, folder in heldout.items():
        metrics = evaluate_model(weights, HeldOut([folder]), devices)
        found[f"{domain} loss"] = round(metrics["masked_lm_loss"], 4)
        found[f"{domain} accuracy"] = round(metrics["masked_lm_accuracy"], 4)
    for row in probe(weights):
        found[f"{row['question']}, {row['distance']}"] = f"{row['found']} of {row['words']}"
    return found


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Draws losses, as differences from the first row, and shares of copied words by stage."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    losses, copies = figure.subplots(1, 2)
    stages = [row["stage"] for row in rows]
    for name in rows[0]:
        if name.endswith(" loss"):
            values = [float(row[name]) - float(rows[0][name]) for row in rows]
            losses.plot(stages, values, "o-", label=name.removesuffix(" loss"))
    losses.axhline(0, color="gray", linewidth=0.8)
    losses.set_ylabel(f"loss of masked words - {stages[0]}'s")
    for color, question in enumerate(["same word", "other wording", "two people"]):
        for distance, style in zip(DISTANCES, ("-", "--", ":")):
            name = f"{question}, {distance}"
            counts = [row[name].split(" of ") for row in rows]
            shares = [int(found) / int(words) for found, words in counts]
            copies.plot(stages, shares, style, color=f"C{color}", label=name)
    copies.set_ylabel("share of words found")
    for axes in (losses, copies):
        axes.tick_params(axis="x", rotation=60)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=100)


def add_row(path: Path, row: dict[str, Any]) -> None:
    """Appends a row to a file, and prints it."""
    append_row(path, row)
    print(*(f"{name}: {value}" for name, value in row.items()), sep="\n", flush=True)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
