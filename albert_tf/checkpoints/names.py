"""One explicit table: the name of every variable here and in google-research/albert.

A row says how a variable is called here, how there, and whether the reference stores its transpose
(`[out, in]` for its output layers).
"""

from __future__ import annotations

from typing import NamedTuple

from albert_tf.config import AlbertConfig


class VariableName(NamedTuple):
    """Where one variable is found in each format."""

    ours: str
    google: str
    transposed: bool = False


def _encoder(config: AlbertConfig) -> list[VariableName]:
    embeddings, google = "encoder/embeddings", "bert/embeddings"
    rows = [
        VariableName(f"{embeddings}/word_embeddings", f"{google}/word_embeddings"),
        VariableName(f"{embeddings}/token_type_embeddings", f"{google}/token_type_embeddings"),
        VariableName(f"{embeddings}/position_embeddings", f"{google}/position_embeddings"),
        *_layer_norm(f"{embeddings}/layer_norm", f"{google}/LayerNorm"),
    ]
    if config.embedding_size != config.hidden_size:
        rows += _dense(f"{embeddings}/projection", "bert/encoder/embedding_hidden_mapping_in")
    for group in range(config.num_hidden_groups):
        for inner in range(config.inner_group_num):
            rows += _block(group, inner)
    return rows + _dense("encoder/pooler", "bert/pooler/dense")


def _block(group: int, inner: int) -> list[VariableName]:
    """The reference calls the blocks of every group attention_1 and ffn_1, and nests the FFN's
    output oddly.
    """
    google = f"bert/encoder/transformer/group_{group}/inner_group_{inner}"
    attention = f"encoder/transformer/group_{group}_inner_{inner}_attention"
    ffn = f"encoder/transformer/group_{group}_inner_{inner}_ffn"
    return [
        *_dense(f"{attention}/query", f"{google}/attention_1/self/query"),
        *_dense(f"{attention}/key", f"{google}/attention_1/self/key"),
        *_dense(f"{attention}/value", f"{google}/attention_1/self/value"),
        *_dense(f"{attention}/output", f"{google}/attention_1/output/dense"),
        *_layer_norm(f"{attention}/layer_norm", f"{google}/LayerNorm"),
        *_dense(f"{ffn}/intermediate", f"{google}/ffn_1/intermediate/dense"),
        *_dense(f"{ffn}/output", f"{google}/ffn_1/intermediate/output/dense"),
        *_layer_norm(f"{ffn}/layer_norm", f"{google}/LayerNorm_1"),
    ]


def _heads() -> list[VariableName]:
    masked_lm, google = "masked_lm", "cls/predictions"
    return [
        *_dense(f"{masked_lm}/transform", f"{google}/transform/dense"),
        *_layer_norm(f"{masked_lm}/layer_norm", f"{google}/transform/LayerNorm"),
        VariableName(f"{masked_lm}/output_bias", f"{google}/output_bias"),
        *_output("sentence_order/logits", "cls/seq_relationship/"),
        *_output("classification/logits", ""),
    ]


def _dense(ours: str, google: str) -> list[VariableName]:
    return [VariableName(f"{ours}/{part}", f"{google}/{part}") for part in ("kernel", "bias")]


def _layer_norm(ours: str, google: str) -> list[VariableName]:
    return [VariableName(f"{ours}/{part}", f"{google}/{part}") for part in ("gamma", "beta")]


def _output(ours: str, scope: str) -> list[VariableName]:
    return [
        VariableName(f"{ours}/kernel", f"{scope}output_weights", transposed=True),
        VariableName(f"{ours}/bias", f"{scope}output_bias"),
    ]


def variable_names(config: AlbertConfig) -> dict[str, VariableName]:
    """The rows of the table by our name, for every variable a model of this configuration may have.

    The reference knows sharing by groups only; other kinds of sharing have no Google names and get
    no rows for the parts that it lacks.
    """
    return {row.ours: row for row in _encoder(config) + _heads()}
