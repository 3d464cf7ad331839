r"""Exports a model folder as a model for LiteRT (TensorFlow Lite), checked in its interpreter.

    python -m export.run_litert --model_dir=runs/topics/model --output_dir=phone/topics \
        --task=classifier --precision=int8 --eval_file=dev.tsv --max_accuracy_loss=0.01
"""

from __future__ import annotations

import tensorflow as tf

from data_pipeline.command_line import flags, run_binary
from data_pipeline.tokenizers import tokenizer_flags
from export import flags as export_flags
from export.litert import LITERT_TASKS, PRECISIONS, LiteRTExport, export_litert

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Export for LiteRT")
    export_flags.define_model_flags(LITERT_TASKS, PRECISIONS)
    flags.DEFINE_string(
        "output_dir", None, "Folder to write, which must not exist yet.", required=True
    )


def export_summary(exported: LiteRTExport) -> str:
    """The lines about an export that this program prints."""
    inputs, outputs = (
        ", ".join(f"{name} {spec}" for name, spec in side.items())
        for side in (exported.inputs, exported.outputs)
    )
    lines = [f"exported {exported.path}", f"  signature tokens: {inputs} -> {outputs}"]
    compared = export_flags.comparison_lines(exported.comparison, exported.model_bytes)
    return "\n".join([*lines, *(f"  {line}" for line in compared)])


def main() -> None:
    """Exports the model, then prints its signature and accuracy."""
    tf.get_logger().setLevel("WARNING")
    exported = export_litert(
        FLAGS.model_dir,
        FLAGS.output_dir,
        FLAGS.task,
        FLAGS.precision,
        FLAGS.max_seq_length,
        export_flags.scored_on(),
        tokenizer_flags.by_hand(),
    )
    print(export_summary(exported))


if __name__ == "__main__":
    define_flags()
    run_binary(main)
