"""SavedModels in numbered folders: written atomically, after their answers were checked."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import uuid
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from albert_tf.checkpoints import literal_paths
from data_pipeline.errors import UserError, message_of
from data_pipeline.files import atomic_files, sealed, storage
from export import fresh_process
from export.comparison import Comparison, Evaluation
from export.probes import Probe
from export.warmup import write_warmup

# For answers up to 1. Rounding alone causes a few 1e-5 in pooled vectors of trained weights.
TOLERANCE = 1e-4
_NUMBER = re.compile(r'_\d+|(?<=s: ")\d+(?=")')
_VALUES = ("string_val:", "tensor_content:")  # Lines of constants, such as labels.
_TEMPORARY = ".tmp-"
_ADVICE = "Copy the folder of the version again, or export again."
# TensorFlow's errors, those for files that are not protocol buffers, and for unexpected names.
_LOAD_ERRORS = (tf.errors.OpError, OSError, ValueError, RuntimeError, KeyError, AttributeError)
MANIFEST_FILE = os.path.join("assets.extra", "export_manifest.json")


@dataclasses.dataclass(frozen=True)
class Exported:
    """The description of a written export.

    Attributes:
      path: folder of the version.
      signatures: for each signature its inputs and outputs as "dtype[shape]" by name.
      max_difference: largest absolute difference from the Keras model over all probes.
      warmup_requests: number of requests in the warm-up file.
      graph_sha256, weights_sha256: equal for two exports of one model folder, see `graph_sha256`;
        if weights are frozen, the hash of the graph also covers them.
      weights_bytes: size of the weights on disk.
      comparison: the export compared with its model in float32.
    """

    path: str
    signatures: dict[str, dict[str, dict[str, str]]]
    max_difference: float
    warmup_requests: int
    graph_sha256: str
    weights_sha256: str
    weights_bytes: int
    comparison: Comparison


def write_version(
    module: Any,
    output_dir: str,
    version: int | None,
    probes: Sequence[Probe],
    provenance: dict[str, Any],
    comparison: Comparison,
    evaluation: Evaluation | None = None,
) -> Exported:
    """Saves `module` as `<output_dir>/<version>/` after checking it against `probes`.

    Args:
      module: its `signatures()` gives the functions to save, by name.
      output_dir: the model's folder, whose name is the model's name.
      version: a positive integer; None takes the next after the highest existing one.
      probes: requests with the answers of the Keras model.
      provenance: further fields of the manifest, besides signatures and checks.
      comparison: with float32, as far as the Keras model determines it.
      evaluation: labeled data on which to score the signature `tokens` as well.

    Raises:
      UserError: the version exists, the answers differ from the Keras model's, or their score is
        too low.
    """
    # TF Serving loads a folder as soon as its name is a number. So everything is written under
    # another name on the same file system, loaded and compared there, and renamed last.
    target = version_path(output_dir, version)
    temporary = os.path.join(output_dir, f"{_TEMPORARY}{uuid.uuid4().hex}")
    tf.io.gfile.makedirs(output_dir)
    _remove_leftovers(output_dir)
    try:
        # First the step that may fail for a missing package, then the slow one.
        write_warmup(temporary, os.path.basename(output_dir.rstrip("/")), probes)
        tf.saved_model.save(module, temporary, signatures=module.signatures())
        exported = _check(temporary, target, probes, comparison, evaluation)
        manifest = {
            **provenance,
            **dataclasses.asdict(exported),
            "version": int(os.path.basename(target)),
        }
        del manifest["path"]
        path = os.path.join(temporary, MANIFEST_FILE)
        hashes = sealed.hashes_of(temporary, _files_of_answers(temporary))
        tf.io.gfile.makedirs(os.path.dirname(path))
        atomic_files.write_json(path, sealed.seal(manifest, hashes))
        _rename_new(temporary, target)
    finally:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
    return exported


def _files_of_answers(directory: str) -> list[str]:
    """Names of the files in a SavedModel that loading reads and that determine its answers."""
    return [
        os.path.join(folder, name)
        for folder in ("", "variables", "assets")
        for name in tf.io.gfile.listdir(os.path.join(directory, folder))
        if not tf.io.gfile.isdir(os.path.join(directory, folder, name))
    ]


def load(directory: str) -> Any:
    """The SavedModel of a folder; its files are checked first if the manifest has hashes.

    Raises:
      UserError: it is damaged; names the file.
    """
    import tensorflow_text  # noqa: F401  (registers the ops of text graphs)

    manifest = os.path.join(directory, MANIFEST_FILE)
    if tf.io.gfile.exists(manifest):
        found = sealed.read(manifest, _ADVICE)
        found.check(directory, found.hashes, _ADVICE)
    try:
        with literal_paths.literal(directory) as path:  # To TensorFlow, "[1]" is a pattern.
            return tf.saved_model.load(path)
    except _LOAD_ERRORS as error:
        reason = message_of(error).rstrip(".")
        raise UserError(f"{directory} cannot be loaded: {reason}. {_ADVICE}") from None


def _remove_leftovers(output_dir: str) -> None:
    """Removes leftovers of exports that were killed."""
    # Only a local folder is locked; on gs://, another export may still be writing.
    if storage.is_remote(output_dir):
        return
    for name in tf.io.gfile.listdir(output_dir):
        if name.startswith(_TEMPORARY):
            tf.io.gfile.rmtree(os.path.join(output_dir, name))


def version_path(output_dir: str, version: int | None) -> str:
    """Path of the folder for a new version; None: the number after the highest. Raises UserError if
    it exists, the number is not positive, or TensorFlow would treat the path as a pattern.
    """
    is_remote = storage.is_remote(output_dir)
    literal_paths.check(output_dir if is_remote else os.path.abspath(output_dir), "An export")
    if version is None:
        return os.path.join(output_dir, str(max(existing_versions(output_dir), default=0) + 1))
    if version < 1:
        raise UserError(f"--version={version}: TF Serving's version numbers start at 1.")
    target = os.path.join(output_dir, str(version))
    if tf.io.gfile.exists(target):
        raise UserError(
            f"{target} exists already. Leave out --version to take the next number, or remove that "
            "folder."
        )
    return target


def existing_versions(output_dir: str) -> list[int]:
    """The version numbers in a folder, ascending; empty if there is no such folder."""
    if not tf.io.gfile.isdir(output_dir):
        return []
    # A version is an int64: servers and clients cannot express larger numbers, nor "007".
    names = (name.rstrip("/") for name in tf.io.gfile.listdir(output_dir))
    return sorted(
        int(name)
        for name in names
        if re.fullmatch("0|[1-9][0-9]{0,18}", name) and int(name) < 1 << 63
    )


def _rename_new(temporary: str, target: str) -> None:
    atomic_files.sync_tree(temporary)  # After a power cut, a version is complete or absent.
    try:
        tf.io.gfile.rename(temporary, target)
    except (tf.errors.AlreadyExistsError, tf.errors.FailedPreconditionError):
        raise UserError(f"{target} was just written by another process. Export again.") from None


def _check(
    directory: str,
    target: str,
    probes: Sequence[Probe],
    comparison: Comparison,
    evaluation: Evaluation | None,
) -> Exported:
    """Checks a SavedModel: a fresh process loads it and answers all probes, and it is scored.
    Returns its description, with `target` as its path.
    """
    try:
        checked = fresh_process.shared().check(directory, probes, TOLERANCE)
    except fresh_process.FreshProcessError as error:
        raise UserError(
            f"{target} was not written, because the exported graph does not answer as the Keras "
            f"model does: {error}. Please report this with the versions of tensorflow and "
            "tensorflow-text."
        ) from error
    if evaluation:
        loaded = tf.saved_model.load(directory)  # Its signatures need its variables.
        tokens = loaded.signatures["tokens"]
        names = list(tokens.structured_input_signature[1])
        accuracy = evaluation.accept(tokens, names, comparison.precision)
        comparison = dataclasses.replace(comparison, accuracy=accuracy)
    files = sum(tf.io.gfile.stat(path).length for path in _weight_files(directory))
    return Exported(
        path=target,
        graph_sha256=graph_sha256(directory),
        weights_sha256=weights_sha256(directory),
        weights_bytes=comparison.float32_bytes if comparison.frozen else files,
        comparison=comparison,
        **checked,
    )


def graph_sha256(directory: str) -> str:
    """Hexadecimal SHA-256 over all functions and nodes of a SavedModel, ignoring their numbers."""
    # TensorFlow numbers traced functions in the order of the whole process. Numbers are removed:
    # `serve_text_5209` -> `serve_text`, and the name "6260" of a captured tensor -> "". Graphs that
    # differ only in the order of two such tensors have the same hash.
    graph = meta_graph(directory).graph_def
    parts = sorted(map(_without_numbers, (*graph.node, *graph.library.function)))
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def meta_graph(directory: str) -> meta_graph_pb2.MetaGraphDef:
    """The graph of a SavedModel with its signatures, as they are in its file."""
    with tf.io.gfile.GFile(os.path.join(directory, "saved_model.pb"), "rb") as file:
        return saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs[0]


def _without_numbers(part: Any) -> str:
    """A node or function as text, with names that do not depend on the process."""
    lines = str(part).splitlines()
    return "\n".join(
        line if line.lstrip().startswith(_VALUES) else _NUMBER.sub("", line) for line in lines
    )


def weights_sha256(directory: str) -> str:
    """Hexadecimal SHA-256 over the variables of a SavedModel."""
    digest = hashlib.sha256()
    for path in _weight_files(directory):
        digest.update(atomic_files.file_sha256(path).encode())
    return digest.hexdigest()


def _weight_files(directory: str) -> list[str]:
    folder = os.path.join(directory, "variables")
    names = tf.io.gfile.listdir(folder)  # No glob: the path may hold brackets.
    return sorted(os.path.join(folder, each) for each in names if ".data-" in each)
