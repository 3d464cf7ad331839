"""Models for LiteRT (TensorFlow Lite): token ids in, answers out, on phones and small machines.

The signature `tokens` of a task becomes a file that uses only LiteRT's own operations, for any
number of rows of any length. The application must tokenize: the vocabulary is in the same folder,
and docs/litert.md has an example.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.machine import fast_switch
from data_pipeline.errors import UserError, needs_extra
from data_pipeline.files import atomic_files, atomic_folders
from export import saved_model
from export.comparison import Comparison, EvalSettings, Evaluation, largest_by_output
from export.model_folder import model_kind, open_model
from export.precision import FLOAT32, check_range, float32_bytes
from export.probes import Probe, largest_difference
from export.tasks import TASKS, check_scored, check_task, provenance

MODEL_FILE = "model.tflite"
MANIFEST_FILE = os.path.basename(saved_model.MANIFEST_FILE)
# How LiteRT's converter stores weights: float16 is expanded when the model is loaded; int8 has one
# scale per output and multiplies integers, so activations are rounded as well.
PRECISIONS = (FLOAT32, "float16", "int8")
# The preprocessor accepts only text.
LITERT_TASKS = tuple(task for task in TASKS if task != "preprocessor")
SIGNATURE = "tokens"


@dataclasses.dataclass(frozen=True)
class LiteRTExport:
    """The description of a written LiteRT model.

    Attributes:
      path: folder of the model, its vocabulary and its labels.
      inputs, outputs: names and types of the signature `tokens`, "int32[?, ?]" by name.
      model_bytes: size of the file.
      comparison: LiteRT's answers compared with those of the float32 model.
    """

    path: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    model_bytes: int
    comparison: Comparison


class Runner:
    """A model in LiteRT's interpreter, created from the content of its file."""

    def __init__(self, content: bytes) -> None:
        from ai_edge_litert.interpreter import Interpreter

        with _native_notes_dropped():
            interpreter = Interpreter(model_content=content)
            interpreter.allocate_tensors()
            self._run = interpreter.get_signature_runner(SIGNATURE)
        self._outputs = self._run.get_output_details()
        self.input_names = tuple(self._run.get_input_details())

    def __call__(self, **inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """The outputs by name; can also be called within a graph."""
        # numpy_function, because `Predictor` calls models within a graph.
        types = [each["dtype"] for each in self._outputs.values()]
        values = [inputs[name] for name in self.input_names]
        answered = tf.nest.flatten(tf.numpy_function(self._answer, values, types))
        found = dict(zip(self._outputs, answered))
        for name, value in found.items():
            value.set_shape([None] * len(self._outputs[name]["shape"]))
        return found

    def _answer(self, *values: np.ndarray) -> list[np.ndarray]:
        answer = self._run(**dict(zip(self.input_names, values)))
        return [answer[name] for name in self._outputs]

    def inputs_and_outputs(self) -> tuple[dict[str, str], dict[str, str]]:
        """Inputs and outputs as "dtype[shape]" by name."""
        details = self._run.get_input_details(), self._outputs
        inputs, outputs = ({name: _describe(each) for name, each in d.items()} for d in details)
        return inputs, outputs


def _describe(details: Mapping[str, Any]) -> str:
    shape = ", ".join("?" if size < 0 else str(size) for size in details["shape_signature"])
    return f"{tf.as_dtype(details['dtype']).name}[{shape}]"


def convert(function: Any, model: Any, precision: str) -> bytes:
    """Converts a tf.function with a signature, which calls the Keras model, to the content of a
    LiteRT file in one of PRECISIONS. Raises ConverterError for operations that LiteRT lacks.
    """
    module = tf.Module()
    module.weights = list(model.variables)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={SIGNATURE: function})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])
        if precision != FLOAT32:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if precision == "float16":
            converter.target_spec.supported_types = [tf.float16]
        with _native_notes_dropped():
            return converter.convert()


@contextlib.contextmanager
def _native_notes_dropped() -> Iterator[None]:
    """A context in which stderr is discarded."""
    # LiteRT's native code prints a page of statistics for each model; errors become exceptions. It
    # writes to the file descriptor, so replacing sys.stderr has no effect.
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def export_litert(
    model_dir: str,
    output_dir: str,
    task: str,
    precision: str = FLOAT32,
    max_seq_length: int | None = None,
    scored_on: EvalSettings | None = None,
    by_hand: Mapping[str, Any] | None = None,
) -> LiteRTExport:
    """Converts a model folder to a LiteRT model, checks its answers, and writes it.

    Arguments as for `export.tasks.export_model`, but `task` is one of LITERT_TASKS, `precision` one
    of PRECISIONS, and `output_dir` must not exist.

    Raises:
      UserError: the arguments do not fit the model, the folder exists, or the answers differ from
        those of the Keras model.
    """
    if precision not in PRECISIONS:
        raise UserError(
            f"--precision={precision}: LiteRT has {', '.join(PRECISIONS)}. Choose one of them."
        )
    with needs_extra("litert", "A model for LiteRT, which is checked before it is written,"):
        import ai_edge_litert.interpreter  # noqa: F401
    if tf.io.gfile.exists(output_dir):
        raise UserError(f"{output_dir} exists already. Remove it, or choose another --output_dir.")
    model_dir = atomic_folders.existing(model_dir)
    metadata = native.read_metadata(model_dir)
    check_task(task, model_kind(metadata), model_dir, LITERT_TASKS)
    if scored_on:
        check_scored(task)
    # Fast layers are compiled by XLA, which LiteRT does not support.
    with tempfile.TemporaryDirectory() as folder, fast_switch.switched_off():
        loaded = open_model(model_dir, metadata, max_seq_length, folder, by_hand)
        evaluation = Evaluation(model_dir, loaded, scored_on) if scored_on else None
        module, probes = TASKS[task].build(loaded)
        check_range(loaded.model, precision)
        content = convert(module.signatures()[SIGNATURE], loaded.model, precision)
        (probe,) = (each for each in probes if each.signature == SIGNATURE)
        runner = Runner(content)
        comparison = Comparison(
            precision, float32_bytes(loaded.model), _check(runner, probe, precision)
        )
        if evaluation:
            accuracy = evaluation.accept(runner, runner.input_names, precision)
            comparison = dataclasses.replace(comparison, accuracy=accuracy)
        inputs, outputs = runner.inputs_and_outputs()
        exported = LiteRTExport(output_dir, inputs, outputs, len(content), comparison)
        manifest = {**provenance(task, loaded, model_dir), **dataclasses.asdict(exported)}
        del manifest["path"]
        with atomic_folders.replacing(output_dir) as new:
            atomic_files.write_bytes(os.path.join(new, MODEL_FILE), content)
            for path in loaded.files():
                atomic_files.copy(path, os.path.join(new, os.path.basename(path)))
            atomic_files.write_json(os.path.join(new, MANIFEST_FILE), manifest)
    return exported


def _check(runner: Runner, probe: Probe, precision: str) -> dict[str, float]:
    """The largest difference of each numeric output from the model's answers; raises UserError if
    rounding cannot explain it.
    """
    given = {name: tf.constant(value) for name, value in probe.inputs.items()}
    answer = {name: value.numpy() for name, value in runner(**given).items()}
    # In fewer bits, scores may change order, so only numbers are compared. Their error must stay
    # below their own magnitude.
    numbers = {
        name: value
        for name, value in probe.expected.items()
        if precision == FLOAT32 or np.issubdtype(value.dtype, np.floating)
    }
    tolerance = saved_model.TOLERANCE if precision == FLOAT32 else 1.0
    try:
        largest_difference(dataclasses.replace(probe, expected=numbers), answer, tolerance)
    except ValueError as error:
        raise UserError(
            f"Nothing was written, because LiteRT in {precision} does not answer as the Keras "
            f"model does: {error}. Try another --precision; in float32, please report this with "
            "the versions of tensorflow and ai-edge-litert."
        ) from error
    return largest_by_output(probe, answer)
