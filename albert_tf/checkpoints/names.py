"""One explicit table of variable names: our name of each variable, google-research's name for the
kind of model (albert, bert, electra), and Hugging Face's name.

Each row also says whether the other two formats store the transpose.
"""

from __future__ import annotations

from typing import NamedTuple

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertModel

# Hugging Face's layer between embeddings and transformer; its ALBERT has it even if E == H.
HUGGINGFACE_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"


class VariableName(NamedTuple):
    """The names of one variable in each format; None if a format has no such variable."""

    ours: str  # Here, and in model folders.
    google: str | None
    huggingface: str | None
    # Our kernels are [in, out]. Hugging Face (PyTorch) stores all kernels as [out, in], the
    # reference only those of its output layers, which it multiplies with transpose_b.
    google_transposed: bool = False
    huggingface_transposed: bool = False


class Kind(NamedTuple):
    """Names for a kind of model: for each part, google-research's and Hugging Face's name."""

    encoder: tuple[str | None, str]
    layer: tuple[str, str]  # Template for group and inner group, within the encoder.
    # The names within a layer, in the order of `_PARTS`.
    layer_parts: tuple[tuple[str, str], ...]
    projection: tuple[str | None, str | None]  # Within the encoder.
    pooler: tuple[str | None, str | None]  # Within the encoder.
    # Of the masked-LM head: transform, norm, bias, and the untied output table.
    masked_lm: tuple[tuple[str | None, str], ...]
    sentence_order: tuple[str | None, str | None]


# Our names within a layer -> BERT's.
_PARTS = {
    "attention/query": "attention/self/query",
    "attention/key": "attention/self/key",
    "attention/value": "attention/self/value",
    "attention/output": "attention/output/dense",
    "attention/layer_norm": "attention/output/LayerNorm",
    "ffn/intermediate": "intermediate/dense",
    "ffn/output": "output/dense",
    "ffn/layer_norm": "output/LayerNorm",
}
_GOOGLE_WORDS = "cls/predictions"
_ALBERT = Kind(
    encoder=("bert", "albert"),
    layer=(
        "encoder/transformer/group_{group}/inner_group_{inner}",
        "encoder.albert_layer_groups.{group}.albert_layers.{inner}",
    ),
    # The reference names the blocks of every group attention_1 and ffn_1, the norms LayerNorm (of
    # attention) and LayerNorm_1, and nests the second dense layer of the FFN in the first.
    layer_parts=(
        ("attention_1/self/query", "attention.query"),
        ("attention_1/self/key", "attention.key"),
        ("attention_1/self/value", "attention.value"),
        ("attention_1/output/dense", "attention.dense"),
        ("LayerNorm", "attention.LayerNorm"),
        ("ffn_1/intermediate/dense", "ffn"),
        ("ffn_1/intermediate/output/dense", "ffn_output"),
        ("LayerNorm_1", "full_layer_layer_norm"),
    ),
    projection=("encoder/embedding_hidden_mapping_in", "encoder.embedding_hidden_mapping_in"),
    pooler=("pooler/dense", "pooler"),
    masked_lm=(
        (f"{_GOOGLE_WORDS}/transform/dense", "predictions.dense"),
        (f"{_GOOGLE_WORDS}/transform/LayerNorm", "predictions.LayerNorm"),
        (f"{_GOOGLE_WORDS}/output_bias", "predictions.bias"),
        (None, "predictions.decoder.weight"),
    ),
    sentence_order=("cls/seq_relationship", "sop_classifier.classifier"),
)
_BERT = Kind(
    encoder=("bert", "bert"),
    layer=("encoder/layer_{group}", "encoder.layer.{group}"),
    layer_parts=tuple((part, part.replace("/", ".")) for part in _PARTS.values()),
    projection=(None, None),
    pooler=("pooler/dense", "pooler.dense"),
    masked_lm=(
        (f"{_GOOGLE_WORDS}/transform/dense", "cls.predictions.transform.dense"),
        (f"{_GOOGLE_WORDS}/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
        (f"{_GOOGLE_WORDS}/output_bias", "cls.predictions.bias"),
        (None, "cls.predictions.decoder.weight"),
    ),
    sentence_order=("cls/seq_relationship", "cls.seq_relationship"),
)
# Hugging Face's model_type -> its names. An ELECTRA has no pooler and no sentence-order head. Its
# generator, a separate model in google-research's checkpoints, is not read.
KINDS = {
    "albert": _ALBERT,
    "bert": _BERT,
    "electra": _BERT._replace(
        encoder=("electra", "electra"),
        projection=("embeddings_project", "embeddings_project"),
        pooler=(None, None),
        masked_lm=(
            (None, "generator_predictions.dense"),
            (None, "generator_predictions.LayerNorm"),
            (None, "generator_lm_head.bias"),
            (None, "generator_lm_head.weight"),
        ),
        sentence_order=(None, None),
    ),
    "distilbert": _BERT._replace(
        encoder=(None, "distilbert"),
        layer=("", "transformer.layer.{group}"),
        layer_parts=tuple(
            ("", part)
            for part in (
                "attention.q_lin",
                "attention.k_lin",
                "attention.v_lin",
                "attention.out_lin",
                "sa_layer_norm",
                "ffn.lin1",
                "ffn.lin2",
                "output_layer_norm",
            )
        ),
        pooler=(None, None),
        masked_lm=(
            (None, "vocab_transform"),
            (None, "vocab_layer_norm"),
            (None, "vocab_projector.bias"),
            (None, "vocab_projector.weight"),
        ),
        sentence_order=(None, None),
    ),
}


def variable_names(model: AlbertModel, kind: str = "albert") -> dict[str, VariableName]:
    """The names of every variable of a model in checkpoints of a kind of `KINDS`, by our name."""
    names = KINDS[kind]
    heads = _heads(model.config, names).get(model.saved_as, [])
    return {row.ours: row for row in [*_encoder(model.config, names), *heads]}


def _encoder(config: AlbertConfig, kind: Kind) -> list[VariableName]:
    scope, prefix = kind.encoder

    def within(part: tuple[str | None, str | None]) -> tuple[str | None, str | None]:
        google, hugging = part
        return scope and google and f"{scope}/{google}", hugging and f"{prefix}.{hugging}"

    rows = []
    for table in ("word_embeddings", "token_type_embeddings", "position_embeddings"):
        names = within((f"embeddings/{table}", f"embeddings.{table}.weight"))
        rows.append(VariableName(f"encoder/embeddings/{table}", *names))
    norm = within(("embeddings/LayerNorm", "embeddings.LayerNorm"))
    rows += _layer_norm("encoder/embeddings/layer_norm", *norm)
    if config.has_embedding_projection:
        google, hugging = within(kind.projection)
        # google-research has no such layer if E == H.
        google = google if config.embedding_size != config.hidden_size else None
        rows += _dense("encoder/embeddings/projection", google, hugging)
    for group in range(max(config.num_attention_groups, config.num_ffn_groups)):
        for inner in range(config.inner_group_num):
            google, hugging = within(kind.layer)
            layer = [name and name.format(group=group, inner=inner) for name in (google, hugging)]
            for ours, (google, hugging) in zip(_PARTS, kind.layer_parts):
                names = layer[0] and f"{layer[0]}/{google}", f"{layer[1]}.{hugging}"
                make = _layer_norm if ours.endswith("layer_norm") else _dense
                block = f"encoder/transformer/group_{group}_inner_{inner}_{ours}"
                rows += make(block, *names)
    return rows + _dense("encoder/pooler", *within(kind.pooler))


def _heads(config: AlbertConfig, kind: Kind) -> dict[str, list[VariableName]]:
    """The variables of heads, by `saved_as` of the models; models not listed have no head."""
    is_electra = kind is KINDS["electra"]
    # The reference creates this head outside of any scope, as output_weights and output_bias. Its
    # fine-tuned ELECTRAs have heads of other shapes.
    outside, squad = (None, None) if is_electra else ("output_", "cls/squad/output_")
    classifier = _output("classification/logits", outside, "classifier")
    google, hugging = kind.sentence_order
    order = _output("sentence_order/logits", google and f"{google}/output_", hugging)
    transform, norm, bias, table = kind.masked_lm
    words = _dense("masked_lm/transform", *transform) + _layer_norm("masked_lm/layer_norm", *norm)
    words.append(VariableName("masked_lm/output_bias", *bias))
    if not config.tie_word_embeddings:
        words.append(VariableName("masked_lm/output_embeddings", *table))
    # Only ELECTRA's software has a detector of replaced tokens.
    name = "discriminator_predictions" if is_electra else None
    detector = [
        *_dense("replaced/transform", name and f"{name}/dense", name and f"{name}.dense"),
        *_dense("replaced/logits", name and f"{name}/dense_1", name and f"{name}.dense_prediction"),
    ]
    return {
        "pretraining": words + order,
        "span_pretraining": words + order + _output("span/logits", None, None),
        "replaced_token_detection": detector + order,
        "classification": classifier,
        "multiple_choice": classifier,
        "token_classification": _output("classification/logits", None, "classifier"),
        "span": _output("span/logits", squad, "qa_outputs"),
        # The head of the reference's run_squad_v2, which Hugging Face does not have.
        "span_v2": [
            *_dense("span/start_logits", "start_logits/dense"),
            *_dense("span/end_transform", "end_logits/dense_0"),
            *_layer_norm("span/end_layer_norm", "end_logits/LayerNorm"),
            *_dense("span/end_logits", "end_logits/dense_1"),
            *_dense("span/answer_transform", "answer_class/dense_0"),
            VariableName("span/answer_logits/kernel", "answer_class/dense_1/kernel", None),
        ],
    }


def _dense(ours: str, google: str | None, hugging: str | None = None) -> list[VariableName]:
    kernel, google_bias = (google and f"{google}/{part}" for part in ("kernel", "bias"))
    weight, bias = (hugging and f"{hugging}.{part}" for part in ("weight", "bias"))
    return [
        VariableName(f"{ours}/kernel", kernel, weight, huggingface_transposed=True),
        VariableName(f"{ours}/bias", google_bias, bias),
    ]


def _layer_norm(ours: str, google: str | None, hugging: str | None = None) -> list[VariableName]:
    gamma, beta = (google and f"{google}/{part}" for part in ("gamma", "beta"))
    weight, bias = (hugging and f"{hugging}.{part}" for part in ("weight", "bias"))
    return [VariableName(f"{ours}/gamma", gamma, weight), VariableName(f"{ours}/beta", beta, bias)]


def _output(ours: str, google: str | None, hugging: str | None) -> list[VariableName]:
    """google: the beginning of both names, as in "cls/squad/output_"."""
    weights, output_bias = (google and f"{google}{part}" for part in ("weights", "bias"))
    dense = _dense(ours, None, hugging)
    return [
        dense[0]._replace(google=weights, google_transposed=True),
        dense[1]._replace(google=output_bias),
    ]


def check_sharing(config: AlbertConfig, software: str) -> None:
    """Raises UserError if groups, all that `software` supports, cannot express the sharing."""
    if config.parameter_sharing in ("attention", "ffn"):
        raise UserError(
            f"parameter_sharing={config.parameter_sharing!r} has no counterpart in {software}, "
            "which can share weights by groups only. Keep the model in this project's own format."
        )
