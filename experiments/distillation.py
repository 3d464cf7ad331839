"""An ensemble of five runs distilled into one, beside plain fine-tuning: a CSV with a row a run.

    python -m experiments.distillation --data_dir=glue --output_dir=work/distilled --tasks=mrpc

Rows that the CSV has are skipped, so that the table grows over many sittings; of the runs, only the
plain ones have to stay. The score is the last model's on dev, by which nothing was chosen.
"""

from __future__ import annotations

import csv
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from albert_tf.errors import UserError
from albert_tf.pretrained.loading import locate
from data_pipeline.command_line import flags, run_binary

FLAGS = flags.FLAGS
MODEL = "albert-small-en"
FIELDS = ("task", "cell", "seed", "score", "minutes", "commit")
SST2_EXAMPLES = 10_000
# Cell -> (number of layers, --distillation; None: plain; teacher: answers of the five, or one run).
CELLS = {
    "plain": (4, None, None),
    "ensemble": (4, "logits:1", "answers"),
    "ensemble and labels": (4, "logits:1,labels:1", "answers"),
    "2 layers": (2, None, None),
    "2 layers taught": (2, "logits:1,relations:1", "run"),
    "1 layer": (1, None, None),
    "1 layer taught": (1, "logits:1,relations:1", "run"),
}


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Experiment")
    flags.DEFINE_string("data_dir", None, "GLUE's root.", required=True)
    flags.DEFINE_string("output_dir", None, "Folder of runs.csv and of the runs.", required=True)
    flags.DEFINE_list("tasks", ["mrpc", "sts-b", "sst-2"], "Tasks, in this order.")
    flags.DEFINE_list("cells", list(CELLS)[:3], f"Rows of the table, of: {', '.join(CELLS)}.")
    flags.DEFINE_integer("seeds", 5, "Number of runs of each cell, and of the ensemble.", 1, 100)
    flags.DEFINE_integer("epochs", 3, "Passes over the examples, in all cells.", 1, 100)
    flags.DEFINE_float("max_minutes", 1e6, "Minutes after which no other run is begun.")


def main() -> None:
    output, start = Path(FLAGS.output_dir), time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    if unknown := [cell for cell in FLAGS.cells if cell not in CELLS]:
        raise UserError(f"--cells={unknown[0]} is not one of {', '.join(CELLS)}.")
    cells = itertools.product(FLAGS.tasks, FLAGS.cells, map(str, range(FLAGS.seeds)))
    done = {key(row) for row in rows(output)}
    for task, cell, seed in (each for each in cells if each not in done):
        if (time.monotonic() - start) / 60 > FLAGS.max_minutes:
            print("The time is over: give the command again to go on.")
            break
        run(output, sst2_beginning(output) if task == "sst-2" else FLAGS.data_dir, task, cell, seed)
    print(table(rows(output)))


def run(output: Path, data: str, task: str, cell: str, seed: str) -> None:
    """One run, whose row is appended to the CSV."""
    layers, terms, teacher = CELLS[cell]
    begun, folder = time.monotonic(), output / task / cell.replace(" ", "_")
    common = [f"--task={task}", f"--data_dir={data}", f"--output_dir={folder / seed}"]
    training = [f"--init_checkpoint={MODEL}", f"--seed={seed}", "--learning_rate=1e-4"]
    training += [f"--num_train_epochs={FLAGS.epochs}"]
    source = locate(MODEL)
    if layers != source.config().num_hidden_layers:  # Shared: the same layer, applied less often.
        config = output / f"{layers}_layers.json"
        source.config().replace(num_hidden_layers=layers).to_json_file(str(config))
        training.append(f"--config_file={config}")
    if teacher:
        plain = output / task / "plain"
        runs = [str(plain / str(each)) for each in range(FLAGS.seeds)]
        named = runs[0] if teacher == "run" else ",".join(f"{each}/outputs" for each in runs)
        training += [f"--teacher={named}", f"--distillation={terms}"]
    call(*common, *training)
    if cell == "plain":
        call(*common, "--mode=predict", "--splits=train")  # For the ensemble.
    results = json.loads((folder / seed / "results.json").read_text())["results"][0]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    minutes = (time.monotonic() - begun) / 60
    score = results["last"]["metrics"][results["key"]]
    with (output / "runs.csv").open("a", newline="") as file:
        writer = csv.writer(file)
        if not file.tell():
            writer.writerow(FIELDS)
        writer.writerow([task, cell, seed, f"{score:.4f}", f"{minutes:.1f}", commit.stdout.strip()])
    shutil.rmtree(folder / seed / "checkpoints", ignore_errors=True)


def call(*arguments: str) -> None:
    """Runs run_finetuning."""
    subprocess.run([sys.executable, "-m", "albert_tf.run_finetuning", *arguments], check=True)


def sst2_beginning(output: Path) -> str:
    """A root of GLUE with the first examples of SST-2."""
    folder = output / "data" / "SST-2"
    folder.mkdir(parents=True, exist_ok=True)
    lines = (Path(FLAGS.data_dir) / "SST-2" / "train.tsv").read_text().splitlines(keepends=True)
    (folder / "train.tsv").write_text("".join(lines[: SST2_EXAMPLES + 1]))
    shutil.copyfile(Path(FLAGS.data_dir) / "SST-2" / "dev.tsv", folder / "dev.tsv")
    return str(folder.parent)


def rows(output: Path) -> list[dict[str, str]]:
    """The rows of the CSV."""
    path = output / "runs.csv"
    return list(csv.DictReader(path.open(newline=""))) if path.exists() else []


def key(row: dict[str, str]) -> tuple[str, str, str]:
    """What tells runs apart."""
    return row["task"], row["cell"], row["seed"]


def table(found: list[dict[str, str]]) -> str:
    """Medians with the lowest and the highest score, in Markdown."""
    lines = [
        "| task | cell | runs | median | lowest to highest |",
        "| --- | --- | --- | --- | --- |",
    ]
    for task, cell in dict.fromkeys((row["task"], row["cell"]) for row in found):
        scores = [100 * float(r["score"]) for r in found if (r["task"], r["cell"]) == (task, cell)]
        spread = f"{min(scores):.1f} to {max(scores):.1f}"
        lines.append(
            f"| {task} | {cell} | {len(scores)} | {statistics.median(scores):.1f} | {spread} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
