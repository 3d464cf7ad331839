"""The demonstration: everything from raw text to a served model, to be run and copied from.

It begins with the weights of this package: they go on with the words of the text, and learn a task
of few labels, beside the same network from scratch.

    python -m demo.run --output_dir=demo_out

Every stage is an ordinary command, which is printed before it runs. A stage that was finished
before is not run again; `--restart` starts over.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import dataclasses
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from albert_tf.pretrained import preset_vocabulary
from albert_tf.targets import processor_has_bfloat16
from data_pipeline.errors import UserError
from demo import figures

FLAGS = flags.FLAGS

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
WEIGHTS = "albert-small-en"
NUM_CLASSES, TRAIN_PER_CLASS = 4, 250  # Few labels: what weights are for.
# From the weights twice the best of three for batches of 16; from scratch none of three learns.
PRETRAINED_RATE, SCRATCH_RATE = 2e-4, 5e-4


@dataclasses.dataclass(frozen=True)
class Stage:
    """A step of the demonstration.

    Attributes:
      name: name in the summary.
      commands: module and flags of each command, run one after the other.
      artifact: file or folder that the stage makes, relative to the output folder.
      figure: output folder -> the stage's key figure.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    artifact: str
    figure: Callable[[Path], str]


def stages(out: Path) -> list[Stage]:
    """The stages in order; the commands are what a user would type."""
    corpus = (f"--corpus={FLAGS.corpus}",) if FLAGS.corpus else ()
    vocabulary = f"--vocab_file={preset_vocabulary(WEIGHTS)}"
    precision = "--precision=" + ("mixed_bfloat16" if processor_has_bfloat16() else "float32")
    return [
        Stage(
            "corpus",
            (
                (
                    "demo.collect_docstrings",
                    f"--output_dir={out}/corpus",
                    "--heldout_share=0.01",
                    *corpus,
                ),
            ),
            "corpus",
            figures.corpus,
        ),
        Stage(
            "records",
            tuple(_records(out, split, vocabulary) for split in ("train", "heldout")),
            "records",
            figures.records,
        ),
        Stage(
            "adaptation",
            (
                (
                    "albert_tf.run_pretraining",
                    f"--flagfile={CONFIGS}/demo_adaptation.flags",
                    f"--train_data={out}/records/train",
                    f"--eval_data={out}/records/heldout",
                    f"--output_dir={out}/adaptation",
                    precision,
                    *FLAGS.adaptation_flag,
                ),
            ),
            "adaptation/model",
            figures.adaptation,
        ),
        Stage(
            "fine-tuning",
            (
                (
                    "demo.make_classification_task",
                    f"--corpus_dir={out}/corpus",
                    f"--output_dir={out}/task",
                    f"--num_classes={NUM_CLASSES}",
                    f"--train_per_class={TRAIN_PER_CLASS}",
                ),
                _fine_tuning(
                    out,
                    "classifier",
                    f"--init_checkpoint={WEIGHTS}",
                    f"--learning_rate={PRETRAINED_RATE}",
                    precision,
                ),
                _fine_tuning(
                    out,
                    "classifier_from_scratch",
                    f"--preset={WEIGHTS}",
                    vocabulary,
                    f"--learning_rate={SCRATCH_RATE}",
                    precision,
                ),
            ),
            "classifier/seeds.md",
            figures.fine_tuning,
        ),
        Stage(
            "export",
            tuple(
                (
                    "export.run_export",
                    f"--model_dir={out}/{folder}/model",
                    f"--task={name}",
                    f"--output_dir={out}/saved_models/{name}",
                )
                for folder, name in (
                    ("classifier/seed-0", "classifier"),
                    ("adaptation", "masked_lm"),
                    ("adaptation", "encoder"),
                )
            ),
            "saved_models",
            figures.export,
        ),
        Stage("serving", (("demo.query", f"--demo_dir={out}"),), "serving.json", figures.serving),
    ]


def _records(out: Path, split: str, vocabulary: str) -> tuple[str, ...]:
    """The command that makes the records of one split."""
    return (
        "data_pipeline.create_pretraining_data",
        f"--input={out}/corpus/{split}.txt",
        f"--output_dir={out}/records/{split}",
        vocabulary,
        "--max_seq_length=64",
        "--overwrite",
    )


def _fine_tuning(out: Path, folder: str, *start: str) -> tuple[str, ...]:
    """The command that trains on the labeled task from a start, with several seeds."""
    return (
        "albert_tf.run_finetuning",
        f"--flagfile={CONFIGS}/demo_classifier.flags",
        f"--train_file={out}/task/train.tsv",
        f"--dev_file={out}/task/dev.tsv",
        *start,
        f"--output_dir={out}/{folder}",
        *FLAGS.classifier_flag,
    )


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Demonstration")
    flags.DEFINE_string("output_dir", "demo_out", "Everything is written below this folder.")
    flags.DEFINE_string(
        "corpus",
        None,
        "Your own text instead of docstrings: txt (blank line between documents), jsonl, .gz.",
    )
    flags.DEFINE_bool("restart", False, "Delete what an earlier run made, and start over.")
    flags.DEFINE_multi_string(
        "adaptation_flag", [], "Further flag of run_pretraining, e.g. --num_train_steps=50."
    )
    flags.DEFINE_multi_string(
        "classifier_flag", [], "Further flag of run_finetuning, e.g. --num_train_epochs=1."
    )


def main() -> None:
    """Runs the stages that are not finished, then prints the summary."""
    out = Path(FLAGS.output_dir)
    if FLAGS.restart and out.exists():
        shutil.rmtree(out)
    done_dir = out / "stages"
    done_dir.mkdir(parents=True, exist_ok=True)
    summary = []
    for stage in stages(out):
        record = done_dir / f"{stage.name}.json"
        commands = [list(command) for command in stage.commands]
        finished = json.loads(record.read_text()) if record.exists() else None
        if finished is None:
            print(f"\n=== {stage.name} ===", flush=True)
            started = time.monotonic()
            for command in stage.commands:
                run(command)
            finished = {"seconds": time.monotonic() - started, "commands": commands}
            record.write_text(json.dumps(finished, indent=2) + "\n")
        elif finished["commands"] != commands:
            raise UserError(
                f"{out} holds the stage {stage.name!r} of a demonstration with other settings. "
                "Start over with --restart (make demo RESTART=1), or name another --output_dir."
            )
        summary.append(
            (stage.name, finished["seconds"], stage.figure(out), str(out / stage.artifact))
        )
    figures.plot(out)
    print_summary(summary)
    print(
        f"\nCurves: {out}/curves.png\nNext: python -m export.server "
        f"--model=classifier={out}/saved_models/classifier"
    )


def run(command: tuple[str, ...]) -> None:
    """Runs `python -m module flags`; its failure ends the demonstration."""
    print(f"\n$ python -m {shlex.join(command)}", flush=True)
    code = subprocess.run([sys.executable, "-m", *command]).returncode
    if code:
        raise UserError(
            f"python -m {command[0]} failed with exit code {code}; its message is above."
        )


def print_summary(rows: list[tuple[str, float, str, str]]) -> None:
    """The final table: stage, wall time, key figure, artifact."""
    width = max(len(row[2]) for row in rows)
    print(f"\n{'stage':<13} {'seconds':>7}  {'result':<{width}}  where")
    for name, seconds, figure, artifact in rows:
        print(f"{name:<13} {seconds:7.0f}  {figure:<{width}}  {artifact}")
    print(f"{'total':<13} {sum(row[1] for row in rows):7.0f}")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
