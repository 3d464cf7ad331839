"""google-research/albert's TF1 checkpoints, as the published archives hold them:
`model.ckpt-best.{index,data}` without a `checkpoint` file, `albert_config.json`, `30k-clean.model`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from albert_tf.checkpoints import bundle, vocabulary
from albert_tf.checkpoints.names import check_sharing, variable_names
from albert_tf.checkpoints.weights import assign
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError, warn_once
from albert_tf.keras_compat import keras
from albert_tf.models import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertSpanLabeler,
    AlbertSpanLabelerV2,
)
from albert_tf.variable_names import variable_name

PREFIX = "model.ckpt"  # Name of the checkpoints that are written.
# Vocabularies next to the checkpoints: in the English archives, in the Chinese ones.
VOCABULARY, CHINESE_VOCABULARY = vocabulary.GOOGLE_SENTENCEPIECE, "vocab_chinese.txt"
# What `output_weights` may be; a regression is a classifier of one class.
HEADS = ("classifier", "regression", "multiple_choice")
_SOFTWARE = "google-research/albert"
_LAYER_NORM_EPS = 1e-12
_KERAS_NORM = re.compile(r"/layer_normalization(_\d+)?/(?=(beta|gamma)$)")
# Sign in a name -> why no model here is of that kind.
_OTHER_MODELS = {
    "/layer_shared/|/word_embeddings_2$": "That is the layout of brightmart/albert_zh, whose model "
    "adds positions behind the projection, which ALBERT does not. Use the Chinese models of "
    "google-research/albert (albert-base-zh and larger).",
    r"^bert/encoder/.*/layer_normalization_\d+/": "That code gave every layer a norm of its own "
    "beside shared weights (google-research/albert, issue 241), which this ALBERT does not have. "
    "Train it again with norms that are shared.",
}


class _GoogleWeights(bundle.BundleWeights):
    """A checkpoint by the reference's names, of whatever version of its code."""

    def __init__(self, prefix: str, use_averages: bool = False) -> None:
        super().__init__(prefix, use_averages)
        _check_names(prefix, self.shapes)
        # Its later code made some layer norms by Keras, with Keras's name.
        names = {_KERAS_NORM.sub("/LayerNorm/", name): name for name in self._stored}
        self._stored = {name: self._stored[stored] for name, stored in names.items()}
        self.shapes = {name: self.shapes[stored] for name, stored in names.items()}


def _check_names(prefix: str, names: Iterable[str]) -> None:
    """Raises UserError for a checkpoint of other code, or of a model that is not an ALBERT."""
    if not any(name.startswith("bert/") for name in names):
        raise UserError(
            f"checkpoint {prefix} has none of google-research's names (bert/...). Pass the "
            "prefix of one of its checkpoints, or a model folder."
        )
    for sign, reason in _OTHER_MODELS.items():
        found = next((name for name in names if re.search(sign, name)), None)
        if found:
            raise UserError(f"checkpoint {prefix} cannot be read: it has {found}. {reason}")


def make_model(prefix: str, config: AlbertConfig, head: str | None = None) -> keras.Model:
    """A model of the class whose heads a checkpoint holds, with random weights. A head with one
    output may be a regression's or RACE's, which the file does not say: `head`, one of
    HEADS, tells; None takes it for a regression, with a warning. A UserError where the checkpoint
    has no such head.
    """
    shapes = _GoogleWeights(prefix).shapes
    outputs = shapes.get("output_weights", [0])[0]
    if head and (outputs == 0 or (outputs > 1 and head != "classifier")):
        raise UserError(
            f"--head={head}: the head of checkpoint {prefix} has {outputs} outputs of this kind. "
            + ("--head=classifier is its only one." if outputs else "Leave --head out.")
        )
    if "cls/predictions/output_bias" in shapes:
        return AlbertPretrainer(config)
    if "cls/squad/output_weights" in shapes:
        return AlbertSpanLabeler(config)
    if "start_logits/dense/kernel" in shapes:
        return AlbertSpanLabelerV2(config)
    if head == "multiple_choice":
        return AlbertMultipleChoice(config)
    if outputs == 1 and head is None:
        warn_once(
            f"{prefix}: its head of one output is taken for a regression; "
            "convert --head=multiple_choice takes it for a head of RACE"
        )
    if outputs:
        return AlbertClassifier(config, num_classes=outputs)
    return AlbertEncoder(config)


def load(
    model: keras.Model,
    prefix: str,
    allow_missing: Sequence[str] = (),
    allow_unused: Sequence[str] = (),
    use_averages: bool = False,
) -> list[str]:
    """`weights.assign` from a checkpoint of the reference.

    Args:
      prefix: path without `.index`.
      use_averages: read the averages of the weights, which TensorFlow's ExponentialMovingAverage
        stores next to them.
    """
    stored_names = _stored_names(model)
    weights = _GoogleWeights(prefix, use_averages)
    if weights.has_averages and not use_averages:
        warn_once(f"{prefix} holds averages of its weights, too: convert --use_averages reads them")
    return assign(model.variables, weights, stored_names.__getitem__, allow_missing, allow_unused)


def save(model: keras.Model, prefix: str) -> None:
    """Writes a checkpoint with exactly the reference's names and shapes; a UserError where the
    reference cannot compute such a model.
    """
    stored_names, tensors = _stored_names(model), {}
    _check_arithmetic(model.config)
    for variable in model.variables:
        name, transposed = stored_names[variable_name(variable)]
        tensors[name] = variable.numpy().T if transposed else variable.numpy()
    bundle.write(prefix, tensors)


def _check_arithmetic(config: AlbertConfig) -> None:
    """Raises UserError for what the reference has no setting for, and would compute otherwise."""
    if config.hidden_act == "gelu_erf":
        raise UserError(
            f"hidden_act gelu_erf: {_SOFTWARE} has GELU by tanh only, and would answer otherwise. "
            "Use another format."
        )
    if config.layer_norm_eps != _LAYER_NORM_EPS:
        raise UserError(
            f"layer_norm_eps {config.layer_norm_eps:g}: {_SOFTWARE} always adds "
            f"{_LAYER_NORM_EPS:g}, and would answer otherwise. Use another format."
        )


def _stored_names(model: keras.Model) -> dict[str, tuple[str, bool]]:
    """Our name -> (the reference's, whether its transpose is stored); a UserError where it has no
    place for some variable.
    """
    check_sharing(model.config, _SOFTWARE)
    rows = variable_names(model).values()
    without = [row.ours for row in rows if row.google is None]
    if without and without[0].startswith("encoder/"):
        raise UserError(
            f"{_SOFTWARE} has no projection where embedding_size equals hidden_size "
            f"({model.config.hidden_size}), and always_project_embeddings asks for one. Use the "
            "format huggingface or native."
        )
    if without:
        raise UserError(
            f"{type(model).__name__} has no counterpart in {_SOFTWARE}: {', '.join(without)}. Use "
            "another format."
        )
    return {row.ours: (row.google, row.google_transposed) for row in rows if row.google}
