"""The flags that both export programs share."""

from __future__ import annotations

from collections.abc import Sequence

from data_pipeline.command_line import flags
from data_pipeline.errors import UserError
from data_pipeline.tokenizers import tokenizer_flags
from export.comparison import Comparison, EvalSettings, shown
from export.model_folder import MIN_SEQ_LENGTH
from export.precision import FLOAT32

FLAGS = flags.FLAGS


def define_model_flags(tasks: Sequence[str], precisions: Sequence[str]) -> None:
    """Flags for the model to export, the task (one of `tasks`), and the precision."""
    flags.DEFINE_string(
        "model_dir",
        None,
        "Model folder that run_pretraining or run_finetuning wrote.",
        required=True,
    )
    flags.DEFINE_enum(
        "task", None, list(tasks), "Kind of export: what the model is asked for.", required=True
    )
    tokenizer_flags.define_flags()
    flags.DEFINE_integer(
        "max_seq_length",
        None,
        "Maximum number of tokens of a text; by default that of training.",
        lower_bound=MIN_SEQ_LENGTH,
        upper_bound=65536,
    )
    flags.DEFINE_enum(
        "precision", FLOAT32, list(precisions), "Precision of the stored weight matrices."
    )
    flags.DEFINE_string(
        "eval_file",
        None,
        "Labeled examples, as run_finetuning reads them, on which float32 and the export are "
        "scored: a file of yours, or the folder of a benchmark.",
    )
    flags.DEFINE_float(
        "max_accuracy_loss",
        None,
        "Largest allowed loss of score compared with float32, 0.01 for a hundredth; needs "
        "--eval_file.",
        0,
        1,
    )


def scored_on() -> EvalSettings | None:
    """The settings from --eval_file and --max_accuracy_loss; None if neither is given. Raises
    UserError if only the second is given.
    """
    if FLAGS.eval_file:
        return EvalSettings(FLAGS.eval_file, FLAGS.max_accuracy_loss)
    if FLAGS.max_accuracy_loss is not None:
        raise UserError(
            f"--max_accuracy_loss={FLAGS.max_accuracy_loss} needs --eval_file, the labeled "
            "examples to measure on. Pass it, or leave both out."
        )
    return None


def comparison_lines(comparison: Comparison, weights_bytes: int) -> list[str]:
    """Human-readable lines that compare an export with its float32 model."""
    frozen = ", frozen" if comparison.frozen else ""
    lines = [
        f"precision {comparison.precision}{frozen}: {weights_bytes / 1e6:.2f} MB; weights in "
        f"float32: {comparison.float32_bytes / 1e6:.2f} MB"
    ]
    if comparison.differences:
        name, largest = max(comparison.differences.items(), key=lambda item: item[1])
        lines.append(f"largest difference from float32: {largest:.1e}, of {name}")
    accuracy = comparison.accuracy
    if accuracy is None:
        return [*lines, "accuracy: not measured, which needs --eval_file"]
    return [
        *lines,
        f"{accuracy.metric} on {accuracy.examples} examples: {shown(accuracy.exported)}, in "
        f"float32 {shown(accuracy.float32)}",
    ]
