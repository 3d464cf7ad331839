"""The signatures of served models: one tf.Module per task, with names that never change.

The Keras model is held by a plain function and not tracked: only its variables are saved, and
loading needs no Keras.
Shapes: B batch, S sequence, C classes, P positions, M masks, K best pieces, V vocabulary.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from data_pipeline.tokenizers.text_graph import TextEncoder

if TYPE_CHECKING:
    from albert_tf.models import AlbertClassifier, AlbertPretrainer

DEFAULT_SIGNATURE = "serving_default"  # The signature of requests that name none.
TEXT = tf.TensorSpec([None], tf.string)


def tokens_spec(name: str) -> tf.TensorSpec:
    """The spec of an input int32 [B, S]."""
    return tf.TensorSpec([None, None], tf.int32, name)


TOKENS = tuple(tokens_spec(name) for name in ("input_word_ids", "input_mask", "input_type_ids"))


def named(name: str) -> tf.TensorSpec:
    """The spec of an input string [B]."""
    return tf.TensorSpec(TEXT.shape, TEXT.dtype, name)


# Nothing is converted by autograph: no function of this package branches on a tensor.
graph_function = functools.partial(tf.function, autograph=False)


def track_files(module: tf.Module | tf.train.Checkpoint, paths: Sequence[str]) -> None:
    """Makes files assets of the SavedModel of a module: they are copied to its folder `assets`."""
    module.files = [tf.saved_model.Asset(path) for path in paths]


class ClassifierModule(tf.Module):
    """Text, text pairs, tokens or tf.Examples -> label and probabilities.

    Args:
      model: AlbertClassifier.
      text: tokenizer and packing.
      labels: C names, by class id.
      files: paths of the files to carry along as assets.
    """

    def __init__(
        self,
        model: AlbertClassifier,
        text: TextEncoder,
        labels: Sequence[str],
        files: Sequence[str],
    ) -> None:
        super().__init__(name="classifier")
        self._forward = functools.partial(model, training=False)
        self.model_variables = list(model.variables)
        self.text_encoder = text
        self._labels = tuple(labels)
        track_files(self, files)

    def _answer(self, inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        logits = self._forward(inputs)
        label_id = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {
            "logits": logits,
            "probabilities": tf.nn.softmax(logits),
            "label": tf.gather(tf.constant(self._labels), label_id),
            "label_id": label_id,
        }

    @graph_function(input_signature=[named("text")])
    def serve_text(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """string [B] -> logits, probabilities [B, C]; label string [B]; label_id int32 [B]."""
        return self._answer(self.text_encoder(text))

    @graph_function(input_signature=[named("text_a"), named("text_b")])
    def serve_text_pair(self, text_a: tf.Tensor, text_b: tf.Tensor) -> dict[str, tf.Tensor]:
        """string [B] twice -> the answer of `serve_text`; an empty `text_b` is no second text."""
        return self._answer(self.text_encoder(text_a, text_b))

    @graph_function(input_signature=TOKENS)
    def serve_tokens(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """int32 [B, S] -> the answer of `serve_text`."""
        return self._answer(
            {
                "input_word_ids": input_word_ids,
                "input_mask": input_mask,
                "input_type_ids": input_type_ids,
            }
        )

    @graph_function(input_signature=[named("inputs")])
    def serve_examples(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """TF Serving's Classify: serialized tf.Examples [B] -> classes string, scores float32.

        Both are [B, C]. Features are `text`, and optionally `text_b`, one string each.
        """
        features = tf.io.parse_example(
            inputs,
            {
                "text": tf.io.FixedLenFeature([], tf.string),
                "text_b": tf.io.FixedLenFeature([], tf.string, default_value=""),
            },
        )
        answer = self._answer(self.text_encoder(features["text"], features["text_b"]))
        scores = answer["probabilities"]
        classes = tf.tile(tf.constant([self._labels]), [tf.shape(scores)[0], 1])  # [B, C]
        return {"classes": classes, "scores": scores}

    def signatures(self) -> dict[str, tf.types.experimental.GenericFunction]:
        """The functions to save, by the names of their signatures."""
        return {
            DEFAULT_SIGNATURE: self.serve_text,
            "text_pair": self.serve_text_pair,
            "tokens": self.serve_tokens,
            "classify": self.serve_examples,
        }


class MaskedLMModule(tf.Module):
    """Text with "[MASK]" in it -> the most probable pieces for each mask.

    Args:
      model: AlbertPretrainer.
      text: tokenizer and packing, made with `read_masks=True`.
      pieces: V pieces, by id.
      files: paths of the files to carry along as assets.
      top_k: K, number of pieces to give for each mask.
    """

    def __init__(
        self,
        model: AlbertPretrainer,
        text: TextEncoder,
        pieces: Sequence[str],
        files: Sequence[str],
        top_k: int = 5,
    ) -> None:
        super().__init__(name="masked_lm")
        self._forward = functools.partial(model, training=False)
        self.model_variables = list(model.variables)
        self.text_encoder = text
        self._pieces = tuple(pieces)
        self._top_k = min(top_k, len(self._pieces))
        track_files(self, files)

    @graph_function(input_signature=[named("text")])
    def serve_text(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """string [B] -> the K best pieces of each of up to M masks.

        Returns:
          top_pieces string, top_ids int32, top_probabilities float32 [B, M, K], best first;
          positions int32 [B, M] of the masks among the tokens; num_masks int32 [B]. Rows with fewer
          than M masks are filled with "", -1, 0 and -1. A mask beyond the longest sequence is cut
          off and not counted.
        """
        inputs = self.text_encoder(text)
        positions = mask_positions(inputs["input_word_ids"], self.text_encoder.mask_id)
        real = positions >= 0  # [B, M]
        inputs["masked_lm_positions"] = tf.maximum(positions, 0)
        logits = self._forward(inputs)["masked_lm_logits"]  # [B, M, V]
        probabilities, ids = tf.math.top_k(tf.nn.softmax(logits), self._top_k)  # [B, M, K]
        real_ids = real[:, :, None]
        return {
            "top_pieces": tf.where(real_ids, tf.gather(tf.constant(self._pieces), ids), ""),
            "top_ids": tf.where(real_ids, ids, -1),
            "top_probabilities": tf.where(real_ids, probabilities, 0.0),
            "positions": positions,
            "num_masks": tf.reduce_sum(tf.cast(real, tf.int32), axis=1),
        }

    @graph_function(input_signature=[*TOKENS, tokens_spec("masked_lm_positions")])
    def serve_tokens(
        self,
        input_word_ids: tf.Tensor,
        input_mask: tf.Tensor,
        input_type_ids: tf.Tensor,
        masked_lm_positions: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Logits of both pre-training tasks.

        Args:
          input_word_ids, input_mask, input_type_ids: int32 [B, S].
          masked_lm_positions: int32 [B, P].

        Returns:
          masked_lm_logits float32 [B, P, V]; sentence_order_logits float32 [B, 2].
        """
        outputs = self._forward(
            {
                "input_word_ids": input_word_ids,
                "input_mask": input_mask,
                "input_type_ids": input_type_ids,
                "masked_lm_positions": masked_lm_positions,
            }
        )
        return {name: outputs[name] for name in ("masked_lm_logits", "sentence_order_logits")}

    def signatures(self) -> dict[str, tf.types.experimental.GenericFunction]:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_text, "tokens": self.serve_tokens}


def mask_positions(word_ids: tf.Tensor, mask_id: int) -> tf.Tensor:
    """int32 [B, S] -> int32 [B, M], positions of `mask_id` in each row, filled up with -1.

    [[7, 4, 4], [4, 8, 9]], mask_id 4 -> [[1, 2], [0, -1]].
    """
    is_mask = word_ids == mask_id
    positions = tf.ragged.boolean_mask(
        tf.broadcast_to(tf.range(tf.shape(word_ids)[1]), tf.shape(word_ids)), is_mask
    )
    return positions.to_tensor(default_value=-1, shape=[None, None])
