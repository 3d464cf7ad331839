"""Parts that the signatures of all tasks share: names, specs, and a module for texts and pairs.

Shapes: B batch, S sequence, F rows that are computed in slices.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from export.graphs.checks import checked_tokens, same_rows
from export.model_folder import LoadedModel
from export.probes import Probe

DEFAULT_SIGNATURE = "serving_default"  # Used for requests that name no signature.
ROWS_AT_A_TIME = 64  # Sequences (context windows, options) that are computed in one slice.

Tensors = dict[str, tf.Tensor]
Signatures = dict[str, tf.types.experimental.GenericFunction]


def tokens_spec(name: str) -> tf.TensorSpec:
    """The spec of an input int32 [B, S]."""
    return tf.TensorSpec([None, None], tf.int32, name)


TOKENS = tuple(tokens_spec(name) for name in ("input_word_ids", "input_mask", "input_type_ids"))


def named(name: str) -> tf.TensorSpec:
    """The spec of an input string [B]."""
    return tf.TensorSpec([None], tf.string, name)


# Without autograph, which is not needed: no function of this package branches on a tensor.
graph_function = functools.partial(tf.function, autograph=False)


def in_slices(
    forward: Callable[[Tensors], Tensors],
    inputs: Tensors,
    outputs: Mapping[str, tf.TensorSpec],
    rows: int | tf.Tensor = ROWS_AT_A_TIME,
) -> Tensors:
    """The `outputs` [F, ...] of `forward` for `inputs` [F, ...], computed `rows` at a time, so that
    memory hardly grows with F.
    """
    count = tf.shape(next(iter(inputs.values())))[0]
    slices = tf.maximum(-(-count // rows), 1)  # An empty TensorArray has no shape.
    arrays = {  # Their size is fixed in advance: servers before 2.13 cannot extend a list.
        name: tf.TensorArray(spec.dtype, slices, infer_shape=False, element_shape=spec.shape)
        for name, spec in outputs.items()
    }

    def some(number: tf.Tensor, arrays: dict[str, tf.TensorArray]) -> tuple[tf.Tensor, Any]:
        first = number * rows
        found = forward({name: each[first : first + rows] for name, each in inputs.items()})
        return number + 1, {name: each.write(number, found[name]) for name, each in arrays.items()}

    # Parallel iterations would keep several slices in memory.
    _, arrays = tf.while_loop(
        lambda number, _: number < slices, some, (0, arrays), parallel_iterations=1
    )
    return {name: each.concat() for name, each in arrays.items()}


def parse_texts(examples: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Serialized tf.Examples [B] -> their features `text` and `text_b`, string [B]; a missing
    `text_b` becomes "".
    """
    features = tf.io.parse_example(
        *same_rows(inputs=examples),
        {
            "text": tf.io.FixedLenFeature([], tf.string),
            "text_b": tf.io.FixedLenFeature([], tf.string, default_value=""),
        },
    )
    return features["text"], features["text_b"]


def frozen(forward: tf.types.experimental.GenericFunction) -> Callable[[Tensors], Any]:
    """The same function of tensors by name, with its weights as constants."""
    # All calls with the same names and ranks share one graph, regardless of sizes: each graph has
    # its own copy of the weights, and a graph cannot exceed 2 GB.
    graphs: dict[Any, Any] = {}

    def call(inputs: Tensors) -> Any:
        key = tuple((name, inputs[name].dtype, inputs[name].shape.rank) for name in sorted(inputs))
        if key not in graphs:
            specs = {name: tf.TensorSpec([None] * rank, dtype, name) for name, dtype, rank in key}
            with tf.init_scope():  # Variables have values here, but not in the caller's graph.
                traced = forward.get_concrete_function(specs)
                # Control flow is not lowered: v1 control flow cannot be called as a function.
                graphs[key] = traced, convert_variables_to_constants_v2(traced, False)
        traced, constant = graphs[key]
        found = constant(*(inputs[name] for name, _, _ in key))
        return tf.nest.pack_sequence_as(traced.structured_outputs, tf.nest.flatten(found))

    return call


class ModelModule(tf.Module):
    """A model with everything its signatures need: its tokenizer as a graph, the variables to save,
    and the files that are exported as assets.

    Args:
      read_masks: whether a literal "[MASK]" in a text stands for the mask token.
    """

    def __init__(self, loaded: LoadedModel, read_masks: bool = False) -> None:
        super().__init__()
        # The model is held by a plain function, which tf.Module does not track: only the variables
        # are saved, and loading needs no Keras. All signatures call this one tf.function, so the
        # graph stores the model once; as an attribute, it would be part of the loaded export.
        forward = graph_function(functools.partial(loaded.model, training=False))
        self.forward = lambda inputs: forward(inputs)
        self._freeze = lambda: frozen(forward)
        self.model_variables = list(loaded.model.variables)
        self._config = loaded.model.config
        self.files = [tf.saved_model.Asset(path) for path in loaded.files()]
        self.text_encoder = loaded.text_encoder(read_masks)

    @abc.abstractmethod
    def signatures(self) -> Signatures:
        """The functions to save, by the names of their signatures."""

    def freeze(self) -> None:
        """Turns the weights from variables into constants of the graph."""
        self.forward = self._freeze()
        self.model_variables = []

    def token_inputs(
        self,
        input_word_ids: tf.Tensor,
        input_mask: tf.Tensor,
        input_type_ids: tf.Tensor,
        shortest: int = 1,
    ) -> Tensors:
        """`checked_tokens` for this model: int32 [..., S] three times -> the same by name."""
        return checked_tokens(input_word_ids, input_mask, input_type_ids, self._config, shortest)


class TextModule(ModelModule):
    """Signatures for texts, text pairs and tokens of a task with one answer per row."""

    @abc.abstractmethod
    def answer(self, inputs: Tensors) -> Tensors:
        """The answers to B rows of the model's inputs, by output name."""

    @graph_function(input_signature=[named("text")])
    def serve_text(self, text: tf.Tensor) -> Tensors:
        """string [B] -> `answer`."""
        return self.answer(self.text_encoder(*same_rows(text=text)))

    @graph_function(input_signature=[named("text_a"), named("text_b")])
    def serve_text_pair(self, text_a: tf.Tensor, text_b: tf.Tensor) -> Tensors:
        """string [B] twice -> `answer`; an empty `text_b` means no second text."""
        return self.answer(self.text_encoder(*same_rows(text_a=text_a, text_b=text_b)))

    @graph_function(input_signature=TOKENS)
    def serve_tokens(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> Tensors:
        """int32 [B, S] -> `answer`."""
        return self.answer(self.token_inputs(input_word_ids, input_mask, input_type_ids))

    def signatures(self) -> Signatures:
        return {
            DEFAULT_SIGNATURE: self.serve_text,
            "text_pair": self.serve_text_pair,
            "tokens": self.serve_tokens,
        }


class TokensModule(tf.Module):
    """Only the signature `tokens` of a ModelModule: a graph without operations of TensorFlow
    Text.
    """

    def __init__(self, module: Any) -> None:
        super().__init__(name="tokens")
        self.serve_tokens = module.signatures()["tokens"]
        self.model_variables = module.model_variables
        self.files = module.files
        self._module = lambda: module  # Kept alive for its function, but hidden from saving.

    def signatures(self) -> Signatures:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_tokens, "tokens": self.serve_tokens}


def tokens_alone(module: Any, probes: Sequence[Probe]) -> tuple[TokensModule, list[Probe]]:
    """A TokensModule of a module, and the probes for its signature."""
    asked = [probe for probe in probes if probe.signature == "tokens"]
    default = [dataclasses.replace(probe, signature=DEFAULT_SIGNATURE) for probe in asked]
    return TokensModule(module), [*default, *asked]
