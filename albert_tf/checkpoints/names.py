"""One explicit table: the name of every variable here, in google-research/albert, in Hugging Face.

A row also says whether the other two store the transpose.
"""

from __future__ import annotations

from typing import NamedTuple

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertModel

# Hugging Face's layer between embeddings and transformer, which it has where E == H, too.
HUGGINGFACE_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"


class VariableName(NamedTuple):
    """The names of one variable in each format; None where a format has no such variable."""

    ours: str  # Here, and in model folders.
    google: str | None
    huggingface: str | None
    # Ours are [in, out]. Hugging Face (PyTorch) keeps every kernel as [out, in], the reference only
    # in its output layers, which it multiplies with transpose_b.
    google_transposed: bool = False
    huggingface_transposed: bool = False


def variable_names(model: AlbertModel) -> dict[str, VariableName]:
    """The names of every variable of a model, by our name."""
    return {
        row.ours: row
        for row in [*_encoder(model.config), *_heads(model.config).get(model.saved_as, [])]
    }


def _encoder(config: AlbertConfig) -> list[VariableName]:
    ours, google, hugging = "encoder/embeddings", "bert/embeddings", "albert.embeddings"
    tables = ("word_embeddings", "token_type_embeddings", "position_embeddings")
    rows = [
        *(
            VariableName(f"{ours}/{table}", f"{google}/{table}", f"{hugging}.{table}.weight")
            for table in tables
        ),
        *_layer_norm(f"{ours}/layer_norm", f"{google}/LayerNorm", f"{hugging}.LayerNorm"),
    ]
    if config.has_embedding_projection:
        # google-research/albert has no such layer where E == H.
        has_google = config.embedding_size != config.hidden_size
        rows += _dense(
            f"{ours}/projection",
            "bert/encoder/embedding_hidden_mapping_in" if has_google else None,
            HUGGINGFACE_PROJECTION,
        )
    for group in range(max(config.num_attention_groups, config.num_ffn_groups)):
        for inner in range(config.inner_group_num):
            rows += _block(group, inner)
    return rows + _dense("encoder/pooler", "bert/pooler/dense", "albert.pooler")


def _block(group: int, inner: int) -> list[VariableName]:
    """The variables of a pair of blocks."""
    # The reference calls the blocks of every group attention_1 and ffn_1, its norms LayerNorm (of
    # attention) and LayerNorm_1, and nests the second dense layer of the FFN in the first.
    google = f"bert/encoder/transformer/group_{group}/inner_group_{inner}"
    hugging = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
    attention = f"encoder/transformer/group_{group}_inner_{inner}_attention"
    ffn = f"encoder/transformer/group_{group}_inner_{inner}_ffn"
    rows = []
    for part in ("query", "key", "value"):
        rows += _dense(
            f"{attention}/{part}",
            f"{google}/attention_1/self/{part}",
            f"{hugging}.attention.{part}",
        )
    return [
        *rows,
        *_dense(
            f"{attention}/output",
            f"{google}/attention_1/output/dense",
            f"{hugging}.attention.dense",
        ),
        *_layer_norm(
            f"{attention}/layer_norm", f"{google}/LayerNorm", f"{hugging}.attention.LayerNorm"
        ),
        *_dense(f"{ffn}/intermediate", f"{google}/ffn_1/intermediate/dense", f"{hugging}.ffn"),
        *_dense(
            f"{ffn}/output", f"{google}/ffn_1/intermediate/output/dense", f"{hugging}.ffn_output"
        ),
        *_layer_norm(
            f"{ffn}/layer_norm", f"{google}/LayerNorm_1", f"{hugging}.full_layer_layer_norm"
        ),
    ]


def _heads(config: AlbertConfig) -> dict[str, list[VariableName]]:
    """The variables of heads, by `saved_as` of the models; others have no head."""
    # The reference makes this head outside of any scope: its names are output_weights, output_bias.
    classifier = _output("classification/logits", "", "classifier")
    return {
        "pretraining": _pretraining_heads(config),
        "replaced_token_detection": _detection_heads(),
        "classification": classifier,
        "multiple_choice": classifier,
        "token_classification": _output("classification/logits", None, "classifier"),
        "span": _output("span/logits", "cls/squad/", "qa_outputs"),
        "span_v2": _span_head(),
    }


def _pretraining_heads(config: AlbertConfig) -> list[VariableName]:
    google = "cls/predictions"
    table = VariableName("masked_lm/output_embeddings", None, "predictions.decoder.weight")
    return [
        *_dense("masked_lm/transform", f"{google}/transform/dense", "predictions.dense"),
        *_layer_norm(
            "masked_lm/layer_norm", f"{google}/transform/LayerNorm", "predictions.LayerNorm"
        ),
        VariableName("masked_lm/output_bias", f"{google}/output_bias", "predictions.bias"),
        *([] if config.tie_word_embeddings else [table]),
        *_output("sentence_order/logits", "cls/seq_relationship/", "sop_classifier.classifier"),
    ]


def _detection_heads() -> list[VariableName]:
    """The heads of a detector, which neither software has on an ALBERT."""
    head = [*_dense("replaced/transform", None), *_dense("replaced/logits", None)]
    order = [f"sentence_order/logits/{part}" for part in ("kernel", "bias")]
    return head + [VariableName(name, None, None) for name in order]


def _span_head() -> list[VariableName]:
    """The head of the reference's run_squad_v2, which Hugging Face does not have."""
    return [
        *_dense("span/start_logits", "start_logits/dense"),
        *_dense("span/end_transform", "end_logits/dense_0"),
        *_layer_norm("span/end_layer_norm", "end_logits/LayerNorm"),
        *_dense("span/end_logits", "end_logits/dense_1"),
        *_dense("span/answer_transform", "answer_class/dense_0"),
        VariableName("span/answer_logits/kernel", "answer_class/dense_1/kernel", None),
    ]


def _dense(ours: str, google: str | None, hugging: str | None = None) -> list[VariableName]:
    kernel, google_bias = (google and f"{google}/{part}" for part in ("kernel", "bias"))
    weight, bias = (hugging and f"{hugging}.{part}" for part in ("weight", "bias"))
    return [
        VariableName(f"{ours}/kernel", kernel, weight, huggingface_transposed=True),
        VariableName(f"{ours}/bias", google_bias, bias),
    ]


def _layer_norm(ours: str, google: str, hugging: str | None = None) -> list[VariableName]:
    weight, bias = (hugging and f"{hugging}.{part}" for part in ("weight", "bias"))
    return [
        VariableName(f"{ours}/gamma", f"{google}/gamma", weight),
        VariableName(f"{ours}/beta", f"{google}/beta", bias),
    ]


def _output(ours: str, google_scope: str | None, hugging: str) -> list[VariableName]:
    weights, bias = (
        None if google_scope is None else f"{google_scope}output_{part}"
        for part in ("weights", "bias")
    )
    return [
        VariableName(
            f"{ours}/kernel",
            weights,
            f"{hugging}.weight",
            google_transposed=True,
            huggingface_transposed=True,
        ),
        VariableName(f"{ours}/bias", bias, f"{hugging}.bias"),
    ]


def check_sharing(config: AlbertConfig, software: str) -> None:
    """Raises UserError for sharing that cannot be expressed by groups, all that `software` has."""
    if config.parameter_sharing in ("attention", "ffn"):
        raise UserError(
            f"parameter_sharing={config.parameter_sharing!r} has no counterpart in {software}, "
            "which knows sharing by groups only. Keep the model in this project's own format."
        )
