r"""Exports a model folder as a numbered SavedModel for TF Serving, TF Hub and export.server.

    python -m export.run_export --model_dir=runs/topics/model --output_dir=exports/topics \
        --task=classifier
    python -m export.run_export --model_dir=runs/topics/model --output_dir=exports/topics \
        --task=classifier --precision=int8 --eval_file=dev.tsv --max_accuracy_loss=0.005
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import os
import re
import shlex

import tensorflow as tf

from export import flags as export_flags
from export.precision import PRECISIONS
from export.saved_model import Exported
from export.tasks import TASKS, export_model

SERVING_IMAGE = "tensorflow/serving:2.20.0"

FLAGS = flags.FLAGS

# What is asked of a task that takes other inputs than one text.
_TEXT = '"some text"'
INSTANCES = {
    "masked_lm": '"some [MASK] text"',
    "question_answering": '{"question": "Who?", "context": "Ann did."}',
    "multiple_choice": '{"context": "Ann ran.", "question": "Who?", "options": ["Ann", "Bob"]}',
}


def next_command(task: str, output_dir: str, path: str) -> str:
    """The next command for an export, in lines to paste into a shell."""
    if task == "encoder":
        return f"python -c \"import tensorflow_hub as hub; print(hub.load('{path}'))\""
    if task == "preprocessor":
        return (
            'python -c "import tensorflow_hub as hub, tensorflow_text; '
            f"print(hub.load('{path}')(['some text']))\""
        )
    folder = output_dir.rstrip("/") if "://" in output_dir else os.path.abspath(output_dir)
    name = re.sub(r"[^\w.-]", "_", os.path.basename(folder))
    model, volume = shlex.quote(f"{name}={folder}"), shlex.quote(f"{folder}:/models/{name}")
    return (
        f"python -m export.server --model={model}\n"
        f"  or: docker run --rm -p 8500:8500 -p 8501:8501 -v {volume} "
        f"-e MODEL_NAME={name} {SERVING_IMAGE}\n"
        f"  then: curl -d '{{\"instances\": [{INSTANCES.get(task, _TEXT)}]}}' "
        f"http://127.0.0.1:8501/v1/models/{name}:predict"
    )


def export_summary(task: str, output_dir: str, exported: Exported) -> str:
    """The lines about an export that this program prints."""
    lines = [f"exported {exported.path}"]
    for name, signature in exported.signatures.items():
        inputs, outputs = (
            ", ".join(f"{tensor} {spec}" for tensor, spec in signature[side].items())
            for side in ("inputs", "outputs")
        )
        lines.append(f"  signature {name}: {inputs} -> {outputs}")
    lines.append(f"  largest difference from the Keras model: {exported.max_difference:.1e}")
    compared = export_flags.comparison_lines(exported.comparison, exported.weights_bytes)
    lines.extend(f"  {line}" for line in compared)
    lines.append(f"  graph {exported.graph_sha256[:16]}, weights {exported.weights_sha256[:16]}")
    lines.append(f"next: {next_command(task, output_dir, exported.path)}")
    return "\n".join(lines)


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Export")
    export_flags.define_model_flags(list(TASKS), PRECISIONS)
    flags.DEFINE_string(
        "output_dir",
        None,
        "Folder of the served model; its versions live in it side by side.",
        required=True,
    )
    flags.DEFINE_integer("version", None, "Number of the version; by default the next one.", 1)


def main() -> None:
    """Exports the model, then prints its signatures and the next command."""
    tf.get_logger().setLevel("WARNING")
    exported = export_model(
        FLAGS.model_dir,
        FLAGS.output_dir,
        FLAGS.task,
        FLAGS.version,
        FLAGS.max_seq_length,
        FLAGS.precision,
        export_flags.scored_on(),
    )
    print(export_summary(FLAGS.task, FLAGS.output_dir, exported))


if __name__ == "__main__":
    define_flags()
    run_binary(main)
