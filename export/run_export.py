r"""Exports a model folder as a numbered SavedModel for TF Serving, TF Hub and export.server.

    python -m export.run_export --model_dir=runs/topics/model --output_dir=exports/topics \
        --task=classifier
    python -m export.run_export --model_dir=runs/topics/model --output_dir=exports/topics \
        --task=classifier --precision=int8 --eval_file=dev.tsv --max_accuracy_loss=0.005
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping

import tensorflow as tf

from data_pipeline.command_line import flags, run_binary
from data_pipeline.tokenizers import tokenizer_flags
from export import flags as export_flags
from export.precision import PRECISIONS
from export.saved_model import Exported
from export.tasks import INPUTS, TASKS, TEXT, export_model

SERVING_IMAGE = "tensorflow/serving:2.20.0"

FLAGS = flags.FLAGS

# Example requests for tasks whose input is not a single text.
_IDS = {
    "input_word_ids": [2, *range(5, 11), 3],
    "input_mask": [1] * 8,
    "input_type_ids": [0] * 8,
    "impossible_positions": [0] * 8,
    "masked_lm_positions": [1],
}
_TEXT = '"some text"'
INSTANCES = {
    "masked_lm": '"some [MASK] text"',
    "question_answering": '{"question": "Who?", "context": "Ann did."}',
    "multiple_choice": '{"context": "Ann ran.", "question": "Who?", "options": ["Ann", "Bob"]}',
}


def instance(task: str, inputs: Mapping[str, str]) -> str:
    """An example row for an export of a task, as JSON. `inputs` are "dtype[shape]" by name; the row
    holds ids if they are ids.
    """
    if "input_mask" not in inputs:
        return INSTANCES.get(task, _TEXT)
    is_choice = inputs["input_mask"].count("?") == 3  # A list for each option.
    return json.dumps({name: [_IDS[name]] if is_choice else _IDS[name] for name in inputs})


def next_command(task: str, output_dir: str, path: str, inputs: Mapping[str, str] = {}) -> str:
    """A command to try an export, as lines to paste into a shell. `output_dir` holds all versions,
    `path` is the folder of this one; `inputs` are those of the default signature, see `instance`.
    """
    if task == "encoder":
        return f"python -c \"import tensorflow_hub as hub; print(hub.load('{path}'))\""
    if task == "preprocessor":
        return (
            'python -c "import tensorflow_hub as hub, tensorflow_text; '
            f"print(hub.load('{path}')(['some text']))\""
        )
    # Docker would treat a relative path as the name of a volume.
    folder = output_dir.rstrip("/") if "://" in output_dir else os.path.abspath(output_dir)
    # The name becomes part of URLs.
    name = re.sub(r"[^\w.-]", "_", os.path.basename(folder))
    model, volume = shlex.quote(f"{name}={folder}"), shlex.quote(f"{folder}:/models/{name}")
    return (
        f"python -m export.server --model={model}\n"
        f"  or: docker run --rm -p 8500:8500 -p 8501:8501 -v {volume} "
        f"-e MODEL_NAME={name} {SERVING_IMAGE}\n"
        f"  then: curl -d '{{\"instances\": [{instance(task, inputs)}]}}' "
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
    asked = exported.signatures["serving_default"]["inputs"]
    lines.append(f"next: {next_command(task, output_dir, exported.path, asked)}")
    return "\n".join(lines)


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Export")
    export_flags.define_model_flags(list(TASKS), PRECISIONS)
    flags.DEFINE_string(
        "output_dir",
        None,
        "Folder of the served model, which holds one folder per version.",
        required=True,
    )
    flags.DEFINE_integer("version", None, "Number of the version; by default the next one.", 1)
    flags.DEFINE_enum(
        "inputs",
        TEXT,
        list(INPUTS),
        "Contents of requests. tokens: only token ids, so that servers without TensorFlow Text "
        "can load the export; text: both, each with its own signatures.",
    )
    flags.DEFINE_bool(
        "freeze",
        False,
        "Store the weights as constants of the graph, up to 2 GB: faster if all requests have "
        "the same number of tokens, slower otherwise. Measure it.",
    )


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
        FLAGS.freeze,
        FLAGS.inputs,
        tokenizer_flags.by_hand(),
    )
    print(export_summary(FLAGS.task, FLAGS.output_dir, exported))


if __name__ == "__main__":
    define_flags()
    run_binary(main)
