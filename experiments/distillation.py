"""Distills an ensemble into one model, and four layers into fewer; compares with fine-tuning.

    python -m experiments.distillation --data_dir=glue --output_dir=work/distilled --tasks=mrpc

Runs with the same weights and epochs that are already in --rows are skipped, so the table can be
built over several calls. The score is the last model's on dev, which was not used for selection.
"""

from __future__ import annotations

import itertools
import json
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from albert_tf.finetuning.runs.run_files import outputs_path, weights_sha256
from albert_tf.pretrained.loading import locate
from benchmarks.tables import chosen
from data_pipeline.command_line import flags, run_binary
from experiments.programs import run_program, spent
from experiments.tables import append_row, markdown_table, read_rows, replace_table
from experiments.weights.intervals import t_interval

FLAGS = flags.FLAGS
MODEL = "albert-small-en"
SST2_EXAMPLES = 10_000
TEACHERS = 5  # Runs of an ensemble.


class Cell(NamedTuple):
    """A row of the table.

    Attributes:
      layers: number of layers of the student, which starts from the weights of MODEL.
      terms: --distillation; "": plain fine-tuning.
      against: the plain cell to compare with.
      of_one: the teacher is the plain run with the same seed, instead of the outputs of TEACHERS.
    """

    layers: int
    terms: str = ""
    against: str = ""
    of_one: bool = False


CELLS = {
    "plain": Cell(4),
    "ensemble": Cell(4, "logits:1", "plain"),
    "ensemble and labels": Cell(4, "logits:1,labels:1", "plain"),
    "2 layers": Cell(2),
    "2 layers taught": Cell(2, "logits:1,relations:1", "2 layers", of_one=True),
    "1 layer": Cell(1),
    "1 layer taught": Cell(1, "logits:1,relations:1", "1 layer", of_one=True),
}


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Experiment")
    flags.DEFINE_string("data_dir", None, "GLUE's root.", required=True)
    flags.DEFINE_list("tasks", ["mrpc", "sts-b", "sst-2"], "Tasks of GLUE, in this order.")
    flags.DEFINE_string("cell", "", "Regular expression for rows of the table, such as ^2.")
    flags.DEFINE_integer("seeds", 5, "Number of runs of each cell.", 1, 100)
    flags.DEFINE_integer("epochs", 3, "Passes over the examples, in all cells.", 1, 100)
    flags.group("Results")
    flags.DEFINE_string("output_dir", None, "Folder of the runs.", required=True)
    flags.DEFINE_string("rows", "docs/distillation.csv", "File with a row for each finished run.")
    flags.DEFINE_string("document", None, "Document whose table of this name is replaced.")


def main() -> None:
    rows = Path(FLAGS.rows)
    same = conditions()

    def comparable() -> list[dict[str, str]]:
        return [row for row in read_rows(rows) if same.items() <= row.items()]

    done = {(row["task"], row["cell"], int(row["seed"])) for row in comparable()}
    cells = chosen("cell", FLAGS.cell, CELLS)
    for task, name, seed in itertools.product(FLAGS.tasks, cells, range(FLAGS.seeds)):
        if (task, name, seed) not in done:
            began, score = time.monotonic(), run(task, name, seed)
            row = {"task": task, "cell": name, "seed": seed, "score": f"{score:.4f}"}
            append_row(rows, {**row, **spent(began), **same})
    table = markdown_table(list(table_rows(comparable())))
    print(f"\n{table}")
    if FLAGS.document:
        replace_table(Path(FLAGS.document), "distillation", table)


def conditions() -> dict[str, str]:
    """What rows of one table have in common."""
    return {"weights": weights_sha256(locate(MODEL))[:12], "epochs": str(FLAGS.epochs)}


def run(task: str, name: str, seed: int) -> float:
    """Runs one cell with one seed; returns its score."""
    cell, folder = CELLS[name], run_path(task, name, seed)
    data = sst2_beginning() if task == "sst-2" else FLAGS.data_dir
    common = [f"--task={task}", f"--data_dir={data}", f"--output_dir={folder}"]
    training = [f"--init_checkpoint={MODEL}", f"--seed={seed}", "--learning_rate=1e-4"]
    training += [f"--num_train_epochs={FLAGS.epochs}", "--precision=mixed_bfloat16"]
    source = locate(MODEL).config()
    if cell.layers != source.num_hidden_layers:  # The shared layer is applied fewer times.
        config = folder.with_suffix(".json")
        config.parent.mkdir(parents=True, exist_ok=True)
        source.replace(num_hidden_layers=cell.layers).to_json_file(str(config))
        training.append(f"--config_file={config}")
    if cell.terms:
        seeds = [seed] if cell.of_one else range(TEACHERS)
        teachers = [str(teacher(task, each)) for each in seeds]
        named = teachers if cell.of_one else [f"{each}/outputs" for each in teachers]
        training += [f"--teacher={','.join(named)}", f"--distillation={cell.terms}"]
    run_program("albert_tf.run_finetuning", *common, *training)
    if name == "plain":  # Store outputs for the ensemble.
        run_program("albert_tf.run_finetuning", *common, "--mode=predict", "--splits=train")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))["results"][0]
    return results["last"]["metrics"][results["key"]]


def teacher(task: str, seed: int) -> Path:
    """The folder of a plain run; trains it first if its outputs on the training set are missing."""
    folder = run_path(task, "plain", seed)
    if not Path(outputs_path(str(folder), "train", "best")).exists():
        run(task, "plain", seed)
    return folder


def run_path(task: str, name: str, seed: int) -> Path:
    """The folder of a run."""
    same = "-".join(conditions().values())
    return Path(FLAGS.output_dir) / same / task / name.replace(" ", "_") / str(seed)


def sst2_beginning() -> Path:
    """A GLUE data folder with only the first examples of SST-2."""
    root = Path(FLAGS.output_dir) / "data"
    folder, source = root / "SST-2", Path(FLAGS.data_dir) / "SST-2"
    folder.mkdir(parents=True, exist_ok=True)
    lines = (source / "train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.tsv").write_text("".join(lines[: SST2_EXAMPLES + 1]), encoding="utf-8")
    shutil.copyfile(source / "dev.tsv", folder / "dev.tsv")
    return root


def table_rows(rows: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Medians, and mean paired differences from the plain cell with 95 % intervals."""
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        of_cell = scores.setdefault((row["task"], row["cell"]), {})
        of_cell[row["seed"]] = 100 * float(row["score"])
    for (task, name), found in scores.items():
        plain = scores.get((task, CELLS[name].against), {})
        pairs = [found[seed] - plain[seed] for seed in found.keys() & plain.keys()]
        ahead = ""
        if len(pairs) > 1:
            low, high = t_interval(pairs)
            ahead = f"{statistics.mean(pairs):+.1f} ({low:+.1f} to {high:+.1f})"
        yield {
            "task": task,
            "cell": name,
            "runs": str(len(found)),
            "median": f"{statistics.median(found.values()):.1f}",
            "lowest to highest": f"{min(found.values()):.1f} to {max(found.values()):.1f}",
            "ahead of": CELLS[name].against,
            "by (95 % interval)": ahead,
        }


if __name__ == "__main__":
    define_flags()
    run_binary(main)
