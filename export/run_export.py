r"""Exports a model folder as a numbered SavedModel for TF Serving, TF Hub and export.server.

    python -m export.run_export --model_dir=runs/topics/model --output_dir=exports/topics \
        --task=classifier
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import os

import tensorflow as tf

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
    folder = os.path.abspath(output_dir)
    name = os.path.basename(folder)
    return (
        f"python -m export.server --model={name}={folder}\n"
        f"  or: docker run --rm -p 8500:8500 -p 8501:8501 -v {folder}:/models/{name} "
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
    lines.append(f"  graph {exported.graph_sha256[:16]}, weights {exported.weights_sha256[:16]}")
    lines.append(f"next: {next_command(task, output_dir, exported.path)}")
    return "\n".join(lines)


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Export")
    flags.DEFINE_string(
        "model_dir",
        None,
        "Model folder that run_pretraining or run_finetuning wrote.",
        required=True,
    )
    flags.DEFINE_string(
        "output_dir",
        None,
        "Folder of the served model; its versions live in it side by side.",
        required=True,
    )
    flags.DEFINE_enum("task", None, list(TASKS), "What to export.", required=True)
    flags.DEFINE_integer("version", None, "Number of the version; by default the next one.", 1)
    flags.DEFINE_integer(
        "max_seq_length",
        None,
        "Longest sequence that a text becomes; by default that of training.",
        lower_bound=5,
        upper_bound=65536,
    )


def main() -> None:
    """Exports the model, then prints its signatures and the next command."""
    tf.get_logger().setLevel("WARNING")
    exported = export_model(
        FLAGS.model_dir, FLAGS.output_dir, FLAGS.task, FLAGS.version, FLAGS.max_seq_length
    )
    print(export_summary(FLAGS.task, FLAGS.output_dir, exported))


if __name__ == "__main__":
    define_flags()
    run_binary(main)
