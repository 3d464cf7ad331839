"""TF1 checkpoints of google-research's ALBERT, BERT and ELECTRA, as in the published archives:

albert     model.ckpt-best.{index,data}, no `checkpoint` file, albert_config.json, 30k-clean.model
bert       bert_model.ckpt.{index,data}, bert_config.json, vocab.txt
electra    electra_small.{index,data}, vocab.txt; the configuration is read from the weights' shapes
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from albert_tf.checkpoints import bundle, vocabulary
from albert_tf.checkpoints.huggingface import kind_to_write
from albert_tf.checkpoints.huggingface_config import as_groups, to_huggingface
from albert_tf.checkpoints.names import check_sharing, variable_names
from albert_tf.checkpoints.weights import NOTHING, Allowed, assign
from albert_tf.config import AlbertConfig
from albert_tf.config_file import GOOGLE_CONFIGS
from albert_tf.errors import UserError, warn_once
from albert_tf.models import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertModel,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertReplacedTokenDetector,
    AlbertSpanLabeler,
    AlbertSpanLabelerV2,
)
from albert_tf.variable_names import variable_name
from data_pipeline.files import atomic_files

PREFIX = "model.ckpt"  # Prefix of the checkpoints that `save` writes.
# Vocabulary files next to the checkpoints, in the English and in the Chinese archives.
VOCABULARY, CHINESE_VOCABULARY = vocabulary.GOOGLE_SENTENCEPIECE, "vocab_chinese.txt"
# Possible meanings of `output_weights`; a regression is a classifier with one class.
HEADS = ("classifier", "regression", "multiple_choice")
# By kind of model: the configuration file, the variant of GELU that the software does not have, and
# prefixes of our names for variables that its models do not have.
CONFIG_FILES = {
    "albert": "albert_config.json",
    **{config["model_type"]: name for name, config in GOOGLE_CONFIGS.items()},
}
_OTHER_GELU = {"albert": "gelu_erf", "bert": "gelu_erf", "electra": "gelu"}
_WITHOUT: dict[str, tuple[str, ...]] = {
    "albert": (),
    "bert": (),
    "electra": ("encoder/pooler/", "sentence_order/"),
}
# An ELECTRA checkpoint also holds the generator, which is a separate model.
_GENERATOR = "^generator"
_LAYER_NORM_EPS = 1e-12
_KERAS_NORM = re.compile(r"/layer_normalization(_\d+)?/(?=(beta|gamma)$)")
# Pattern of a variable name -> why such a checkpoint cannot be read.
_OTHER_MODELS = {
    "/layer_shared/|/word_embeddings_2$": "This is the layout of brightmart/albert_zh, whose model "
    "adds positions after the projection, unlike ALBERT. Use the Chinese models of "
    "google-research/albert (albert-base-zh and larger).",
    r"^bert/encoder/.*/layer_normalization_\d+/": "Its code gave every layer a separate norm "
    "despite shared weights (google-research/albert, issue 241), which is not supported. "
    "Train it again with shared norms.",
}


class GoogleWeights(bundle.BundleWeights):
    """A checkpoint by the reference's names, from any version of its code. `kind`: of the model in
    it, one of `names.KINDS`.
    """

    def __init__(self, prefix: str, use_averages: bool = False) -> None:
        super().__init__(prefix, use_averages)
        _check_names(prefix, self.shapes)
        # Later versions of its code create some layer norms by Keras, under Keras's name.
        names = {_KERAS_NORM.sub("/LayerNorm/", name): name for name in self._stored}
        self._stored = {name: self._stored[stored] for name, stored in names.items()}
        self.shapes = {name: self.shapes[stored] for name, stored in names.items()}
        if any(name.startswith("electra/") for name in self.shapes):
            self.kind = "electra"
        else:
            is_bert = "bert/encoder/layer_0/output/dense/bias" in self.shapes
            self.kind = "bert" if is_bert else "albert"


def _check_names(prefix: str, names: Iterable[str]) -> None:
    """Raises UserError for checkpoints of other code or of an unsupported architecture."""
    if not any(name.startswith(("bert/", "electra/")) for name in names):
        raise UserError(
            f"checkpoint {prefix} has none of google-research's names (bert/..., electra/...). "
            "Pass the prefix of one of its checkpoints, or a model folder."
        )
    for sign, reason in _OTHER_MODELS.items():
        found = next((name for name in names if re.search(sign, name)), None)
        if found:
            raise UserError(f"checkpoint {prefix} cannot be read: it has {found}. {reason}")


def electra_config(prefix: str) -> AlbertConfig | None:
    """The architecture of an ELECTRA, from the shapes of its weights; None for other checkpoints.
    The published archives have no configuration, and all of them have a head size of 64.
    """
    shapes = GoogleWeights(prefix).shapes
    words = shapes.get("electra/embeddings/word_embeddings")
    layer = re.compile(r"electra/encoder/layer_\d+/intermediate/dense/bias")
    sizes = [shape[0] for name, shape in shapes.items() if layer.fullmatch(name)]
    if words is None or not sizes:
        return None
    hidden = shapes["electra/encoder/layer_0/output/dense/bias"][0]
    return AlbertConfig.from_dict(
        {
            "model_type": "electra",
            "vocab_size": words[0],
            "embedding_size": words[1],
            "hidden_size": hidden,
            "num_hidden_layers": len(sizes),
            "num_attention_heads": max(1, hidden // 64),
            "intermediate_size": sizes[0],
            "max_position_embeddings": shapes["electra/embeddings/position_embeddings"][0],
            "type_vocab_size": shapes["electra/embeddings/token_type_embeddings"][0],
        },
        prefix,
    )


def make_model(prefix: str, config: AlbertConfig, head: str | None = None) -> AlbertModel:
    """A model, with random weights, of the class that has the checkpoint's heads. A head with one
    output may belong to a regression or to RACE, and the file does not tell which. `head`, one of
    HEADS, decides; None assumes a regression, with a warning. Raises UserError if the checkpoint
    has no such head.
    """
    shapes = GoogleWeights(prefix).shapes
    outputs = shapes.get("output_weights", [0])[0]
    if head and (outputs == 0 or (outputs > 1 and head != "classifier")):
        raise UserError(
            f"--head={head}: the classifier of checkpoint {prefix} has {outputs} outputs. "
            + ("Use --head=classifier." if outputs else "Leave --head out.")
        )
    if "cls/predictions/output_bias" in shapes:
        return AlbertPretrainer(config)
    if "discriminator_predictions/dense/kernel" in shapes:
        return AlbertReplacedTokenDetector(config)
    if "cls/squad/output_weights" in shapes:
        return AlbertSpanLabeler(config)
    if "start_logits/dense/kernel" in shapes:
        return AlbertSpanLabelerV2(config)
    if head == "multiple_choice":
        return AlbertMultipleChoice(config)
    if outputs == 1 and head is None:
        warn_once(
            f"{prefix}: its head of one output is read as a regression; "
            "for a RACE model, use convert --head=multiple_choice"
        )
    if outputs:
        return AlbertClassifier(config, num_classes=outputs)
    return AlbertEncoder(config)


def load(
    model: AlbertModel, prefix: str, allowed: Allowed = NOTHING, use_averages: bool = False
) -> list[str]:
    """`weights.assign` from a checkpoint of the reference, whose path without `.index` is `prefix`.
    use_averages: read the averages of the weights, which TensorFlow's ExponentialMovingAverage
    stores next to them.
    """
    weights = GoogleWeights(prefix, use_averages)
    kind = weights.kind
    if kind == "electra":
        absent = [f"^{part}" for part in _WITHOUT[kind]]
        allowed = Allowed([*allowed.missing, *absent], [*allowed.unused, _GENERATOR])
    stored_names = _stored_names(model, kind)
    if weights.has_averages and not use_averages:
        warn_once(f"{prefix} also holds averages of its weights: convert --use_averages reads them")
    return assign(model.variables, weights, stored_names.__getitem__, allowed)


def save(model: AlbertModel, prefix: str, kind: str | None = None) -> None:
    """Writes a checkpoint with exactly the reference's names and shapes, and the configuration next
    to it. Raises UserError if the reference cannot compute such a model. `kind`: the kind that the
    model was made from, if known; see `kind_to_write`.
    """
    kind = kind_to_write(model, kind)
    _check_arithmetic(model.config, kind)
    stored_names, tensors = _stored_names(model, kind), {}
    for variable in model.variables:
        name, transposed = stored_names[variable_name(variable)]
        if not name.startswith(_WITHOUT[kind]):
            tensors[name] = variable.numpy().T if transposed else variable.numpy()
    bundle.write(prefix, tensors)
    folder = os.path.dirname(prefix)
    if kind == "albert":
        as_groups(model.config).to_json_file(os.path.join(folder, CONFIG_FILES[kind]))
        return
    values = to_huggingface(model.config, kind)
    # The reference has a fixed layer_norm_eps, which `_check_arithmetic` has checked.
    names = {*AlbertConfig.field_names()} - {"layer_norm_eps"}
    values = {key: value for key, value in values.items() if key in names}
    # Hugging Face has two names for the two variants of GELU. The reference calls its only one
    # "gelu"; `_check_arithmetic` has checked that it is the right one.
    values["hidden_act"] = "gelu" if "gelu" in values["hidden_act"] else values["hidden_act"]
    atomic_files.write_json(os.path.join(folder, CONFIG_FILES[kind]), values, sort_keys=True)


def _check_arithmetic(config: AlbertConfig, kind: str) -> None:
    """Raises UserError for settings that the reference does not have and would ignore."""
    act, eps, difference = config.hidden_act, config.layer_norm_eps, ""
    if act == _OTHER_GELU[kind]:
        way = {"gelu_erf": "by tanh", "gelu": "exactly"}[act]
        difference = f"hidden_act {act}: {_software(kind)} computes GELU {way} only"
    elif eps != _LAYER_NORM_EPS:
        difference = f"layer_norm_eps {eps:g}: {_software(kind)} always adds {_LAYER_NORM_EPS:g}"
    if difference:
        raise UserError(f"{difference}, so its outputs would differ. Use another format.")


def _software(kind: str) -> str:
    return f"google-research/{kind}"


def _stored_names(model: AlbertModel, kind: str) -> dict[str, tuple[str, bool]]:
    """Our name -> (the reference's name, whether its transpose is stored). Parts that no model of
    this kind has there keep our name. Raises UserError for other variables that it cannot store.
    """
    check_sharing(model.config, _software(kind))
    rows = variable_names(model, kind).values()
    absent = [row.ours for row in rows if row.google is None]
    without = [name for name in absent if not name.startswith(_WITHOUT[kind])]
    if without and without[0].startswith("encoder/"):
        raise UserError(
            f"{_software(kind)} has no projection if embedding_size equals hidden_size "
            f"({model.config.hidden_size}), but always_project_embeddings requires one. Use the "
            "format huggingface or native."
        )
    if without:
        raise UserError(
            f"{type(model).__name__} has no counterpart in {_software(kind)}: "
            f"{', '.join(without)}. Use another format."
        )
    return {row.ours: (row.google or row.ours, row.google_transposed) for row in rows}
