"""Replaced-token detection (Clark et al., ELECTRA, ICLR 2020) with an ALBERT as the detector.

    original    the  cat  sat  on   the  mat
    masked      the [MASK] sat  on   the [MASK]    a small ALBERT predicts the words, and from its
    corrupted   the  cat  sat  on   the  hat      distribution words are drawn
    replaced     0    0    0    0    0    1       the detector predicts this at every position

A drawn word that equals the original counts as original. The generator learns by masked language
modeling only: no gradient flows through the drawn words.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras, policy_scope
from albert_tf.layers.basic import SizedLayer, build_children, dense_layer
from albert_tf.layers.operations import ACTIVATIONS, Seed, fold_in
from albert_tf.models.base import AlbertModel
from albert_tf.models.heads import OutputHead
from albert_tf.models.inputs import complete_inputs
from albert_tf.models.pretrainer import AlbertPretrainer
from albert_tf.models.task_model import TaskModel, Tensors

# Inputs of the pre-training model, in addition to its encoder's.
_FURTHER_INPUTS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights", "sampling_noise")


def generator_config(config: AlbertConfig, size: float) -> AlbertConfig:
    """The architecture of a generator for a detector with `config`: layers `size` times as wide
    (above 0, up to 1), with fewer heads of the same width and a feed-forward size in proportion.
    """
    # E stays, because generator and detector share their embeddings. The generator is smaller,
    # because a strong one's words are too hard to tell from originals (ELECTRA, section 3.2).
    num_heads = max(1, round(size * config.num_attention_heads))
    share = num_heads / config.num_attention_heads
    return config.replace(
        hidden_size=num_heads * config.head_size,
        num_attention_heads=num_heads,
        intermediate_size=round(share * config.intermediate_size),
    )


def draw(logits: tf.Tensor, noise: tf.Tensor, temperature: float) -> tf.Tensor:
    """Words int32 [B, P] drawn from the softmax of logits / temperature, float32 [B, P, V], with
    noise float32 [B, P], uniform in [0, 1). A temperature below 1 makes likely words likelier.
    """
    # Inverse transform sampling: the drawn word is the number of words whose cumulative probability
    # is at most the noise. It takes one uniform number per word, where ELECTRA's Gumbel noise takes
    # V, and gives the same distribution. The noise is an input that depends only on seed and step:
    # a resumed run draws the same words.
    probabilities = tf.nn.softmax(tf.stop_gradient(logits) / temperature)
    reached = tf.cumsum(probabilities, axis=-1)  # [B, P, V]
    # The sum may end below 1; without this factor, noise above it would draw the invalid word V.
    threshold = noise[:, :, tf.newaxis] * reached[:, :, -1:]
    return tf.reduce_sum(tf.cast(reached <= threshold, tf.int32), axis=-1)


def put_at(ids: tf.Tensor, positions: tf.Tensor, words: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Ids int32 [B, S] with words put at positions, both int32 [B, P], where weights are not 0."""
    # Where weights are 0, the existing id is written back. Such positions are 0, [CLS], which is
    # never masked, so no other word is written to the same position.
    words = tf.where(weights > 0, words, tf.gather(ids, positions, batch_dims=1))
    rows = tf.broadcast_to(tf.range(tf.shape(ids)[0])[:, tf.newaxis], tf.shape(positions))
    return tf.tensor_scatter_nd_update(ids, tf.stack([rows, positions], axis=-1), words)


class DetectionHead(SizedLayer):
    """Predicts for every token whether it was replaced: two dense layers, as in ELECTRA."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, 1, **kwargs)
        self._activation = ACTIVATIONS[config.hidden_act]
        self.transform = dense_layer(config.hidden_size, config, name="transform")
        self.logits = dense_layer(1, config, name="logits")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        build_children(self._config.hidden_size, self.transform, self.logits)
        super().build(input_shape)

    def call(self, hidden: tf.Tensor) -> tf.Tensor:
        """float [B, S, H] -> float32 [B, S]."""
        logits = self.logits(self._activation(self.transform(hidden)))
        return tf.cast(logits[:, :, 0], tf.float32)


@keras.utils.register_keras_serializable("albert_tf")
class AlbertReplacedTokenDetector(TaskModel):
    """Predicts which tokens of a text are not the original ones (ELECTRA's discriminator).

    Outputs, a dict: `replaced_logits` float32 [B, S], above 0 where a token looks replaced,
    unspecified at padding; `sentence_order_logits` float32 [B, 2], as of AlbertPretrainer;
    `pooled_output` float [B, H].
    """

    default_name, saved_as = "replaced_token_detector", "replaced_token_detection"

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.replaced = self.new_head(DetectionHead, name="replaced", per_token=True)
        self.sentence_order = self.new_head(OutputHead, 2, name="sentence_order")

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        outputs = self.encoder(inputs, training=training, seed=seed)
        return {
            "replaced_logits": self.replaced(outputs["sequence_output"]),
            "sentence_order_logits": self.sentence_order(outputs["pooled_output"]),
            "pooled_output": outputs["pooled_output"],
        }


@keras.utils.register_keras_serializable("albert_tf")
class ReplacedTokenPretrainer(AlbertModel):
    """A generator and a detector that share their embeddings, to be trained together.

    Inputs: as for AlbertPretrainer, and `masked_lm_ids` int32 [B, P], `masked_lm_weights` float32
    [B, P], `sampling_noise` float32 [B, P], uniform in [0, 1).
    Outputs, a dict: `masked_lm_logits` float32 [B, P, V] of the generator; `replaced_logits`
    float32 [B, S] and `sentence_order_logits` float32 [B, 2] of the detector; `is_replaced` bool
    [B, S], the target of the detector.

    Attributes:
      detector: AlbertReplacedTokenDetector, the model that is kept.
      generator: AlbertPretrainer, whose pooler and sentence-order head are not trained.
    """

    settings = ("generator_size", "sampling_temperature", "detection_weight", "detector_order")

    def __init__(
        self,
        config: AlbertConfig | dict[str, Any],
        generator_size: float = 0.25,
        sampling_temperature: float = 1.0,
        detection_weight: float = 50.0,
        detector_order: bool = True,
        *,
        name: str = "replaced_token_pretrainer",
        **kwargs: Any,
    ) -> None:
        """
        Args:
          generator_size: the width of the generator's layers, as a share of the detector's.
          sampling_temperature: the softmax temperature at which replacements are drawn.
          detection_weight: the weight of the detector's loss; the generator's has 1.
          detector_order: whether the detector learns the order of sentences as well.
        """
        super().__init__(config, name=name, **kwargs)
        self._autocast = False  # Else Keras rounds the noise to bfloat16: few words could be drawn.
        self.generator_size, self.sampling_temperature = generator_size, sampling_temperature
        self.detection_weight, self.detector_order = detection_weight, detector_order
        with policy_scope(self.dtype_policy):
            self.detector = AlbertReplacedTokenDetector(self.config, packed=self.packed)
            self.generator = AlbertPretrainer(
                generator_config(self.config, generator_size), packed=self.packed
            )
        # ELECTRA, section 3.2: masked language modeling trains embeddings best, since each softmax
        # updates the whole vocabulary, and the detector updates only the words in its input.
        ours, theirs = self.generator.encoder.embeddings, self.detector.encoder.embeddings
        for table in ("word_embeddings", "token_type_embeddings", "position_embeddings"):
            setattr(ours, table, getattr(theirs, table))
        self.built = True

    @property
    def encoder(self) -> AlbertModel:
        """The encoder of the detector, the model that is kept."""
        return self.detector.encoder

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        inputs = complete_inputs(inputs, also=_FURTHER_INPUTS)
        at, words, weights, noise = (inputs[name] for name in _FURTHER_INPUTS)
        masked = self.generator(inputs, training=training, seed=fold_in(seed, 0))
        logits = masked["masked_lm_logits"]
        drawn = draw(logits, noise, self.sampling_temperature)
        # The inputs have [MASK] there, and a drawn word is compared with the original one.
        original = put_at(inputs["input_word_ids"], at, words, weights)
        corrupted = put_at(original, at, drawn, weights)
        detected = self.detector(
            {**inputs, "input_word_ids": corrupted}, training=training, seed=fold_in(seed, 1)
        )
        return {
            "masked_lm_logits": logits,
            "replaced_logits": detected["replaced_logits"],
            "sentence_order_logits": detected["sentence_order_logits"],
            "is_replaced": corrupted != original,
        }
