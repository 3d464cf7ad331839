"""Every kind of architecture and every public model, as tables that conformance tests go through.

A new public model, task or kind of architecture adds a row to a table here, and gets all tests.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.config import AlbertConfig
from albert_tf.distillation.objective import DistillationObjective
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertSpanPretrainer, ReplacedTokenPretrainer
from albert_tf.models.losses import Ratio
from albert_tf.models.objectives import (
    ClassificationObjective,
    MultiLabelObjective,
    PretrainingObjective,
    RecurringSpansObjective,
    RegressionObjective,
    ReplacedTokensObjective,
    SpanObjective,
    SpanObjectiveV2,
    TokenClassificationObjective,
)
from albert_tf.models.pairs import PairObjective

BATCH, LENGTH, CLASSES = 4, 10, 3

BASE = AlbertConfig(
    vocab_size=40,
    embedding_size=8,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=12,
)
SHALLOW = BASE.replace(num_hidden_layers=1)  # Where graphs are made again and again.
# Where programs run on a vocabulary of 48 pieces.
SMALLEST = SHALLOW.replace(vocab_size=48, intermediate_size=16, max_position_embeddings=32)

# Name -> (configuration, number of attention blocks, number of feed-forward blocks).
CONFIGS = {
    "all shared": (BASE, 1, 1),
    "attention shared": (BASE.replace(parameter_sharing="attention"), 1, 2),
    "ffn shared": (BASE.replace(parameter_sharing="ffn"), 2, 1),
    "none shared": (BASE.replace(parameter_sharing="none"), 2, 2),
    "two groups of two": (
        BASE.replace(num_hidden_layers=3, num_hidden_groups=2, inner_group_num=2),
        4,
        4,
    ),
    "embedding as wide as hidden": (BASE.replace(embedding_size=16), 1, 1),
    "output table of its own": (BASE.replace(tie_word_embeddings=False), 1, 1),
    "relu and dropout": (
        BASE.replace(hidden_act="relu", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1),
        1,
        1,
    ),
}


@dataclasses.dataclass(frozen=True)
class Model:
    """A public model: how to make it, and a task that trains it.

    Attributes:
      num_head_variables: beside the encoder's, of a public model.
      untrained: paths of the parts that its loss does not reach.
    """

    make: Callable[..., keras.Model]
    task: Callable[[keras.Model], Any]
    num_head_variables: int = 0
    untrained: Sequence[str] = ()


class OutputsTask:
    """The mean square of a model's outputs, for models that no loss of their own trains."""

    losses = metrics = ("square",)

    def __init__(self, model: keras.Model) -> None:
        self.model = model

    def ratios(self, batch, training, seed=None):
        outputs = self.model(batch, training=training, seed=seed)
        names = ("sequence_output", "mean_output", "replaced_logits")
        first = next(outputs[name] for name in names if name in outputs)
        total = tf.reduce_sum((tf.cast(first, tf.float32) - 0.3) ** 2)
        total += tf.reduce_sum(tf.cast(outputs["pooled_output"], tf.float32) ** 2)
        return {"square": Ratio(total, tf.constant(float(BATCH * LENGTH)))}


def classes(model: Callable[..., keras.Model]) -> Callable[..., keras.Model]:
    return lambda config, **arguments: model(config, CLASSES, **arguments)


def beam(config: AlbertConfig, **arguments: Any) -> keras.Model:
    return albert_tf.AlbertSpanLabelerV2(config, start_n_top=2, end_n_top=3, **arguments)


MODELS = {
    albert_tf.AlbertEncoder: Model(albert_tf.AlbertEncoder, OutputsTask, 0),
    albert_tf.AlbertPretrainer: Model(albert_tf.AlbertPretrainer, PretrainingObjective, 7),
    AlbertSpanPretrainer: Model(AlbertSpanPretrainer, RecurringSpansObjective, 9),
    albert_tf.AlbertReplacedTokenDetector: Model(
        albert_tf.AlbertReplacedTokenDetector, OutputsTask, 6, ["sentence_order"]
    ),
    albert_tf.AlbertClassifier: Model(
        classes(albert_tf.AlbertClassifier), ClassificationObjective, 2
    ),
    albert_tf.AlbertTokenClassifier: Model(
        classes(albert_tf.AlbertTokenClassifier),
        TokenClassificationObjective,
        2,
        ["encoder.pooler"],
    ),
    albert_tf.AlbertMultipleChoice: Model(
        albert_tf.AlbertMultipleChoice, ClassificationObjective, 2
    ),
    albert_tf.AlbertSpanLabeler: Model(
        albert_tf.AlbertSpanLabeler, SpanObjective, 2, ["encoder.pooler"]
    ),
    albert_tf.AlbertSpanLabelerV2: Model(beam, SpanObjectiveV2, 11, ["encoder.pooler"]),
    albert_tf.AlbertSentenceEncoder: Model(albert_tf.AlbertSentenceEncoder, OutputsTask, 0),
}


@functools.cache
def _teacher() -> keras.Model:
    with tf.init_scope():  # A test may ask for it in a graph.
        model = albert_tf.AlbertClassifier(BASE, CLASSES)
        for number, variable in enumerate(model.variables):
            variable.assign(0.1 * tf.random.stateless_normal(variable.shape, [number, 1]))
    return model


def distilled(student: keras.Model) -> DistillationObjective:
    """All terms of a classifier that compare two models, but for the one that learns a layer."""
    terms = dict.fromkeys(("logits", "labels", "cosine", "attention", "relations"), 1.0)
    return albert_tf.distill(ClassificationObjective(student), _teacher(), terms)


# What is trained, by its model or, where that has a row already, by its task. A generator and its
# detector are no public model: of the two only the detector is kept, and that has a row above.
TRAININGS = {
    **MODELS,
    RegressionObjective: Model(
        lambda config, **arguments: albert_tf.AlbertClassifier(config, 1, **arguments),
        RegressionObjective,
    ),
    MultiLabelObjective: Model(
        lambda config, **arguments: albert_tf.AlbertClassifier(
            config, CLASSES, multi_label=True, **arguments
        ),
        MultiLabelObjective,
    ),
    PairObjective: Model(
        albert_tf.AlbertSentenceEncoder, PairObjective, untrained=["encoder.pooler"]
    ),
    DistillationObjective: Model(classes(albert_tf.AlbertClassifier), distilled),
    ReplacedTokenPretrainer: Model(
        ReplacedTokenPretrainer,
        ReplacedTokensObjective,
        untrained=["generator.encoder.pooler", "generator.sentence_order"],
    ),
}

# The rows that `make test` runs: one model for each kind of output, and one architecture for each
# way through the layers. The marker `table` leaves the others to `make test-all`.
FEW_CONFIGS = ("all shared", "attention shared", "two groups of two")
FEW_MODELS = (albert_tf.AlbertPretrainer, albert_tf.AlbertClassifier, albert_tf.AlbertSpanLabelerV2)
_FEW = {*FEW_CONFIGS, *FEW_MODELS, DistillationObjective, ReplacedTokenPretrainer}


def rows(*cases: Any) -> list[Any]:
    """Cases of a test, of which those that are not among the few are marked."""

    tuples = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*values, marks=() if _FEW.issuperset(values) else pytest.mark.table)
        for values in tuples
    ]


def _name(value: Any) -> str | None:
    return getattr(value, "__name__", None)


# All configurations with one model, and all models with one configuration.
_PAIRS = [(name, albert_tf.AlbertPretrainer) for name in CONFIGS] + [
    ("all shared", kind) for kind in TRAININGS if kind is not albert_tf.AlbertPretrainer
]
every_config = pytest.mark.parametrize("config_name", CONFIGS)
every_model = pytest.mark.parametrize("model_class", rows(*MODELS), ids=_name)
every_training = pytest.mark.parametrize("kind", rows(*TRAININGS), ids=_name)
every_config_or_training = pytest.mark.parametrize(("config_name", "kind"), rows(*_PAIRS))
every_config_or_model = pytest.mark.parametrize(
    ("config_name", "model_class"), rows(*(pair for pair in _PAIRS if pair[1] in MODELS))
)


def make_batch(kind: type | None = None) -> dict[str, tf.Tensor]:
    """Inputs and labels of every task; rows of 10, 7, 3 and 1 real tokens."""
    rng = np.random.default_rng(1)
    lengths = np.array([LENGTH, 7, 3, 1])[:, None]
    arrays = {
        "input_word_ids": rng.integers(0, 40, [BATCH, LENGTH]),
        "input_mask": np.arange(LENGTH)[None] < lengths,
        "input_type_ids": rng.integers(0, 2, [BATCH, LENGTH]),
        "masked_lm_positions": np.zeros([BATCH, 2]),
        "masked_lm_ids": rng.integers(0, 40, [BATCH, 2]),
        "sentence_order_labels": [0, 1, 1, 0],
        "label_ids": [0, 1, 2, 0],
        "token_label_ids": rng.integers(0, CLASSES, [BATCH, LENGTH]),
        "impossible_positions": np.arange(LENGTH)[None] >= lengths,
        "start_positions": [4, 2, 1, 0],
        "end_positions": [6, 2, 2, 0],
        "is_impossible": [0, 0, 1, 1],
        "label_matrix": [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]],
    }
    batch = {name: tf.constant(np.asarray(values), tf.int32) for name, values in arrays.items()}
    batch["masked_lm_weights"] = tf.ones([BATCH, 2])
    batch["span_starts"] = tf.constant([[2, 7], [3, 1], [1, 0], [0, 0]])
    batch["span_ends"] = tf.constant([[2, 9], [4, 1], [2, 0], [0, 0]])
    batch["span_weights"] = tf.constant([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    batch["token_weights"] = tf.cast(batch["input_mask"], tf.float32)
    batch["example_weights"] = tf.ones([BATCH])
    batch["label_values"] = tf.constant([1.5, 2.0, 1.0, 2.5])
    if kind is ReplacedTokenPretrainer:  # It puts words to places that differ, all of them real.
        batch["masked_lm_positions"] = tf.constant([[0, 1]] * BATCH)
        batch["input_mask"] = tf.sequence_mask([LENGTH, 7, 3, 2], LENGTH, tf.int32)
        batch["sampling_noise"] = tf.random.stateless_uniform([BATCH, 2], [1, 2])
    if kind in (albert_tf.AlbertMultipleChoice, PairObjective):
        shifts = (1, 2, 3) if kind is albert_tf.AlbertMultipleChoice else (0, 1)
        for name in INPUTS:  # The choices are the rows shifted by one, two and three.
            batch[name] = tf.stack([tf.roll(batch[name], shift, 0) for shift in shifts], axis=1)
    return batch


INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


def floats(outputs: Any) -> list[np.ndarray]:
    """Every output of a model."""
    return [tensor.numpy() for tensor in tf.nest.flatten(outputs)]


def assert_equal(left: Any, right: Any, atol: float = 0.0) -> None:
    """All outputs, or variables, of two models."""
    for one, other in zip(tf.nest.flatten(left), tf.nest.flatten(right), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol, err_msg=getattr(one, "name", ""))


@contextlib.contextmanager
def global_policy(name: str) -> Iterator[None]:
    """What Keras makes in the block has this precision."""
    keras.mixed_precision.set_global_policy(name)
    try:
        yield
    finally:
        keras.mixed_precision.set_global_policy("float32")


def mean_square(_, output: tf.Tensor) -> tf.Tensor:
    """A loss of any outputs, which wants them to be 0."""
    return tf.reduce_mean(output**2)


def is_trainable(model: keras.Model) -> list[str]:
    """Names of the variables that are trained."""
    return [variable.name for variable in model.trainable_variables]
