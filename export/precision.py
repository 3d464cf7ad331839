"""The precision in which the weights of an export are stored: matrices in fewer bits.

A `StoredMatrix`, which reads as float32, replaces the variable of each matrix. The Keras model
itself then computes with the stored values, so signatures and probes need no changes, and a graph
is compared with its model as exactly as before. Vectors, one weight in two hundred, stay float32.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from albert_tf.keras_compat import keras
from data_pipeline.errors import UserError

FLOAT32 = "float32"
PRECISIONS = (FLOAT32, "bfloat16", "float16", "int8")
_LARGEST_INT8 = 127  # -128 is not used, so that the range is symmetric.


class StoredMatrix(tf.Module):
    """A matrix [rows, columns] that is stored in fewer bits and reads as float32.

    int8 has one scale per output: per column of a kernel [in, out], or per row of an embedding
    table [V, E]. `output_axis` says which.
    """

    # Keeps TensorFlow from searching this attribute for submodules.
    _TF_MODULE_IGNORED_PROPERTIES = tf.Module._TF_MODULE_IGNORED_PROPERTIES | {"_expanded"}

    def __init__(self, values: np.ndarray, precision: str, output_axis: int, name: str) -> None:
        super().__init__(name=name)
        self.shape = tf.TensorShape(values.shape)
        self.dtype = tf.float32
        self._scales: tf.Variable | None = None
        # One tensor per graph, so that layers that share a matrix expand it only once.
        self._expanded: weakref.WeakKeyDictionary[tf.Graph, tf.Tensor] = weakref.WeakKeyDictionary()
        if precision == "int8":
            stored, scales = quantize(values, output_axis)
            self._stored = tf.Variable(stored, trainable=False, name="stored")
            self._scales = tf.Variable(scales, trainable=False, name="scales")
        else:
            self._stored = tf.Variable(tf.cast(values, precision), name="stored")

    def read(self) -> tf.Tensor:
        """float32 [rows, columns]."""
        if tf.executing_eagerly():
            return self._expand(self._stored, self._scales)
        graph = tf.compat.v1.get_default_graph()
        if graph not in self._expanded:
            self._expanded[graph] = self._expand(self._stored, self._scales)
        return self._expanded[graph]

    def sparse_read(self, indices: tf.Tensor, name: str | None = None) -> tf.Tensor:
        """Rows float32 [..., columns], for `tf.gather`; expands only these rows."""
        del name
        rows = tf.gather(self._stored, indices)
        scales = self._scales
        # A single row of scales belongs to the columns and applies to all rows.
        if scales is not None and scales.shape[0] > 1:
            scales = tf.gather(scales, indices)
        return self._expand(rows, scales)

    def __getitem__(self, places: slice) -> tf.Tensor:
        return self.read()[places]

    # Arithmetic stays float32: the processor that will serve the graph is unknown, and only some
    # are faster in fewer bits (figures in docs/serving.md).
    @staticmethod
    def _expand(stored: tf.Tensor, scales: tf.Tensor | None) -> tf.Tensor:
        values = tf.cast(stored, tf.float32)
        return values if scales is None else values * scales


def _to_tensor(matrix: StoredMatrix, dtype=None, name=None, as_ref=False) -> tf.Tensor:
    del name, as_ref
    if dtype is not None and not dtype.is_compatible_with(tf.float32):
        return NotImplemented
    return matrix.read()


tf.register_tensor_conversion_function(StoredMatrix, _to_tensor)


def quantize(values: np.ndarray, output_axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers and scales whose products approximate the values, float32 [rows, columns].

    The integers are int8 [rows, columns]. The scales are float32, [rows, 1] for an `output_axis` of
    0, else [1, columns]; 1 where all values are 0.
    """
    largest = np.abs(values).max(axis=1 - output_axis, keepdims=True)
    scales = np.where(largest > 0, largest / _LARGEST_INT8, 1).astype(np.float32)
    return np.rint(values / scales).astype(np.int8), scales


def store(model: keras.Model, precision: str) -> None:
    """Converts the matrices of a model to a precision, in place; float32 changes nothing. Raises
    UserError if a weight is outside the range of float16.
    """
    if precision == FLOAT32:
        return
    check_range(model, precision)
    for layer, name, variable in list(_matrices(model)):  # A list: the loop changes attributes.
        # Embedding tables are gathered by row and multiplied transposed: their rows are outputs.
        output_axis = 1 if name == "kernel" else 0
        setattr(layer, name, StoredMatrix(variable.numpy(), precision, output_axis, name))


def check_range(model: keras.Model, precision: str) -> None:
    """Raises UserError if a matrix of a model has a value outside the range of float16."""
    if precision != "float16":
        return
    limit = np.finfo(np.float16).max
    for _, _, variable in _matrices(model):
        largest = np.abs(variable.numpy()).max()
        if largest > limit:
            raise UserError(
                f"--precision=float16: {variable.name} holds {largest:.3g}, more than float16's "
                f"maximum {limit:.0f}. Use float32 or, in a SavedModel, bfloat16."
            )


def float32_bytes(model: keras.Model) -> int:
    """Size of the weights of a model before `store`."""
    return sum(4 * variable.shape.num_elements() for variable in model.variables)


def _matrices(model: keras.Model) -> Iterator[tuple[keras.layers.Layer, str, tf.Variable]]:
    """All matrices of a model: the layer, the name of its attribute, and the variable."""
    for module in (model, *model.submodules):
        if isinstance(module, keras.layers.Layer):
            for name, value in vars(module).items():
                if isinstance(value, tf.Variable) and value.shape.rank == 2:
                    yield module, name, value
