r"""Writes the archive that gluebenchmark.com scores, from the stored answers to the test sets.

    python -m albert_tf.write_glue_submission --runs="runs/*" --output=submission.zip

All nine tasks and AX are needed. run_finetuning --mode=predict stores the predictions of a run; for
AX, predict with the MNLI run: --task=ax --output_dir=runs/mnli.
"""

from __future__ import annotations

from albert_tf.finetuning.runs.glue_submission import (
    FILES,
    dev_score_sentence,
    stored_predictions,
    write_submission,
)
from albert_tf.finetuning.runs.members import find_folders
from data_pipeline.command_line import flags, run_binary

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Submission")
    flags.DEFINE_list(
        "runs",
        [],
        "Folders of runs or ensembles that together have answers to all test sets; * and ? match "
        "several. A folder of --seeds or --search means its best run.",
        required=True,
    )
    flags.DEFINE_string("output", None, "Path of the zip archive.", required=True)


def main() -> None:
    folders = find_folders(FLAGS.runs)
    predictions = stored_predictions(folders)
    write_submission(FLAGS.output, predictions)
    for name in FILES:
        print(f"{name}: {len(predictions[name])} predictions")
    print(dev_score_sentence(folders))
    print(f"Archive: {FLAGS.output}")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
