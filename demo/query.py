"""Queries the exported models in every way, and compares the answers with the Keras models' own.

The ways: HTTP and gRPC of the local server (the same calls as TF Serving), hub.load and
hub.KerasLayer.

    python -m demo.query --demo_dir=demo_out
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from data_pipeline.command_line import flags, run_binary

from albert_tf.keras_compat import keras  # isort: skip  Chooses Keras before TensorFlow is imported.

import numpy as np
import tensorflow as tf

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # tensorflow_hub imports pkg_resources, which is deprecated.
    import tensorflow_hub as hub

from albert_tf.checkpoints import native
from data_pipeline.errors import UserError
from data_pipeline.finetuning.examples import TextExample
from data_pipeline.finetuning.features import encode_texts
from data_pipeline.finetuning.tsv import read_tsv
from data_pipeline.tokenizers import file_names
from data_pipeline.tokenizers.loading import load_tokenizer
from export.client import predict_grpc, predict_rest
from export.saved_model import existing_versions

FLAGS = flags.FLAGS

TICKETS = Path(__file__).parent / "tickets"
START_SECONDS = 120
# REST and gRPC return probabilities; hub.load and hub.KerasLayer return an encoder's output, where
# Keras itself, with the shipped weights, differs from float64 by 2e-5.
TOLERANCES = {"REST": 1e-5, "gRPC": 1e-5, "hub.load": 1e-4, "hub.KerasLayer": 1e-4}
CLOZE = ["The value of the [MASK] is true.", "An exception is [MASK] by the statement."]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Demonstration")
    flags.DEFINE_string("demo_dir", "demo_out", "Output folder of the demonstration.")


def main() -> None:
    """Prints answers and differences, and writes answers.json; fails if a difference is large."""
    out = Path(FLAGS.demo_dir)
    examples = read_tsv(str(TICKETS / "dev.tsv")).examples[:16]
    texts = [example.text_a for example in examples]
    differences = {}
    with local_server(out / "saved_models", ["classifier", "masked_lm"]) as address:
        expected = keras_probabilities(out / "classifier" / "seed-0" / "model", examples)
        rows = predict_rest(address["rest"], "classifier", texts)
        differences["REST"] = largest(expected, [row["probabilities"] for row in rows])
        answer = predict_grpc(address["grpc"], "classifier", {"text": texts})
        differences["gRPC"] = largest(expected, answer["probabilities"])
        for example, row in zip(examples[:4], rows):
            print(f"{example.text_a:<60}  {row['label']} (should be {example.label})")
        for text, row in zip(CLOZE, predict_rest(address["rest"], "masked_lm", CLOZE)):
            print(f"{text:<60}  {' '.join(row['top_pieces'][0])}")
    differences.update(hub_differences(out, examples))
    for way, difference in differences.items():
        print(f"{way}: largest difference from Keras {difference:.1e}")
    result = {"largest_difference": max(differences.values()), "differences": differences}
    (out / "answers.json").write_text(json.dumps(result, indent=2) + "\n")
    too_far = [
        f"{way} by {difference:.1e}, more than {TOLERANCES[way]:.0e}"
        for way, difference in differences.items()
        if not difference <= TOLERANCES[way]  # Not `>`: the difference can be NaN.
    ]
    if too_far:
        raise UserError(f"answers differ from Keras: {', '.join(too_far)}.")


@contextlib.contextmanager
def local_server(models: Path, names: list[str]) -> Iterator[dict[str, str]]:
    """A context in which export.server runs on free ports; its value is the addresses."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "export.server", "--rest_port=0", "--grpc_port=0"]
        command += [f"--ready_file={ready}", *(f"--model={name}={models / name}" for name in names)]
        server = subprocess.Popen(command)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not ready.exists():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise UserError("the local server did not start; its message is above.")
                time.sleep(0.2)
            yield json.loads(ready.read_text())
        finally:
            server.terminate()
            server.wait()


def keras_inputs(model_dir: Path, examples: list[TextExample]) -> dict[str, np.ndarray]:
    """Examples encoded by the model's Python tokenizer."""
    tokenizer = load_tokenizer(str(model_dir / file_names.SENTENCEPIECE))
    length = native.read_metadata(str(model_dir))["max_seq_length"]
    return encode_texts(examples, tokenizer, length).inputs()


def keras_probabilities(model_dir: Path, examples: list[TextExample]) -> np.ndarray:
    """Probabilities float32 [B, C] of the Keras model."""
    logits = native.load_model(str(model_dir))(keras_inputs(model_dir, examples))
    return tf.nn.softmax(logits).numpy()


def hub_differences(out: Path, examples: list[TextExample]) -> dict[str, float]:
    """Differences of the encoder from TF Hub, as a function and as a trainable Keras layer."""
    folder = out / "saved_models" / "encoder"
    path = str(folder / str(existing_versions(str(folder))[-1]))
    model_dir = out / "pretraining" / "model"
    inputs = {
        name: tf.constant(values) for name, values in keras_inputs(model_dir, examples).items()
    }
    expected = native.load_model(str(model_dir)).encoder(inputs)["pooled_output"]
    layer = hub.KerasLayer(path, trainable=True)
    specs = {name: keras.Input([None], dtype=tf.int32, name=name) for name in inputs}
    model = keras.Model(specs, layer(specs)["pooled_output"])
    differences = {
        "hub.load": largest(expected, hub.load(path)(inputs)["pooled_output"]),
        "hub.KerasLayer": largest(expected, model(inputs)),
    }
    print(f"hub.KerasLayer(trainable=True): {len(model.trainable_variables)} trainable variables")
    return differences


def largest(expected: np.ndarray, received: np.ndarray) -> float:
    """The largest absolute difference."""
    return float(np.abs(np.asarray(expected) - np.asarray(received)).max())


if __name__ == "__main__":
    define_flags()
    run_binary(main)
