"""The one table of names: chosen rows, and that every variable of every model has one."""

from __future__ import annotations

import pytest

from albert_tf import models
from albert_tf.checkpoints.names import VariableName, check_sharing, variable_names
from albert_tf.errors import UserError
from albert_tf.models import AlbertEncoder
from albert_tf.variable_names import variable_name

KINDS = {
    AlbertEncoder: {},
    models.AlbertSentenceEncoder: {},
    models.AlbertPretrainer: {},
    models.AlbertSpanPretrainer: {},
    models.AlbertReplacedTokenDetector: {},
    models.AlbertClassifier: {"num_classes": 3},
    models.AlbertTokenClassifier: {"num_classes": 3},
    models.AlbertMultipleChoice: {},
    models.AlbertSpanLabeler: {},
    models.AlbertSpanLabelerV2: {},
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_hidden_groups": 2, "inner_group_num": 2},
        {"parameter_sharing": "none", "embedding_size": 16},
        {"embedding_size": 16, "always_project_embeddings": True},
        {"tie_word_embeddings": False},
    ],
    ids=str,
)
def test_a_row_for_each_variable_and_no_other(tiny_config, kind, changes):
    model = kind(tiny_config.replace(**changes), **KINDS[kind])
    rows = variable_names(model)
    assert set(rows) == {variable_name(variable) for variable in model.variables}
    assert all(name == row.ours for name, row in rows.items())
    for names in zip(*((row.google, row.huggingface) for row in rows.values())):
        stored = [name for name in names if name is not None]
        assert len(stored) == len(set(stored))


def test_rows_of_the_encoder(tiny_config):
    rows = variable_names(AlbertEncoder(tiny_config.replace(num_hidden_groups=2)))
    assert len(rows) == 41
    for row in (
        VariableName(
            "encoder/embeddings/word_embeddings",
            "bert/embeddings/word_embeddings",
            "albert.embeddings.word_embeddings.weight",
        ),
        VariableName(
            "encoder/embeddings/layer_norm/beta",
            "bert/embeddings/LayerNorm/beta",
            "albert.embeddings.LayerNorm.bias",
        ),
        VariableName(
            "encoder/embeddings/projection/kernel",
            "bert/encoder/embedding_hidden_mapping_in/kernel",
            "albert.encoder.embedding_hidden_mapping_in.weight",
            huggingface_transposed=True,
        ),
        VariableName(
            "encoder/transformer/group_1_inner_0_attention/key/kernel",
            "bert/encoder/transformer/group_1/inner_group_0/attention_1/self/key/kernel",
            "albert.encoder.albert_layer_groups.1.albert_layers.0.attention.key.weight",
            huggingface_transposed=True,
        ),
        VariableName(
            "encoder/transformer/group_1_inner_0_ffn/output/bias",
            "bert/encoder/transformer/group_1/inner_group_0/ffn_1/intermediate/output/dense/bias",
            "albert.encoder.albert_layer_groups.1.albert_layers.0.ffn_output.bias",
        ),
        VariableName(
            "encoder/transformer/group_1_inner_0_ffn/layer_norm/gamma",
            "bert/encoder/transformer/group_1/inner_group_0/LayerNorm_1/gamma",
            "albert.encoder.albert_layer_groups.1.albert_layers.0.full_layer_layer_norm.weight",
        ),
        VariableName("encoder/pooler/bias", "bert/pooler/dense/bias", "albert.pooler.bias"),
    ):
        assert rows[row.ours] == row


def test_rows_of_heads(tiny_config):
    """Output layers are the ones that the reference, too, stores as [out, in]."""
    rows = {}
    for kind, arguments in KINDS.items():
        found = variable_names(kind(tiny_config, **arguments)).values()
        rows[kind.__name__] = [row for row in found if not row.ours.startswith("encoder/")]
    assert rows["AlbertEncoder"] == rows["AlbertSentenceEncoder"] == []
    assert rows["AlbertPretrainer"][4:] == [
        ("masked_lm/output_bias", "cls/predictions/output_bias", "predictions.bias", False, False),
        (
            "sentence_order/logits/kernel",
            "cls/seq_relationship/output_weights",
            "sop_classifier.classifier.weight",
            True,
            True,
        ),
        (
            "sentence_order/logits/bias",
            "cls/seq_relationship/output_bias",
            "sop_classifier.classifier.bias",
            False,
            False,
        ),
    ]
    kernel, bias = "classification/logits/kernel", "classification/logits/bias"
    for name in ("AlbertClassifier", "AlbertMultipleChoice"):
        assert rows[name] == [
            (kernel, "output_weights", "classifier.weight", True, True),
            (bias, "output_bias", "classifier.bias", False, False),
        ]
    assert [row[:3] for row in rows["AlbertTokenClassifier"]] == [
        (kernel, None, "classifier.weight"),
        (bias, None, "classifier.bias"),
    ]
    assert rows["AlbertSpanLabeler"][0][1:3] == ("cls/squad/output_weights", "qa_outputs.weight")
    assert {row.huggingface for row in rows["AlbertSpanLabelerV2"]} == {None}


def test_a_projection_that_the_reference_does_not_have(tiny_config):
    config = tiny_config.replace(embedding_size=16, always_project_embeddings=True)
    row = variable_names(AlbertEncoder(config))["encoder/embeddings/projection/bias"]
    assert row[1:3] == (None, "albert.encoder.embedding_hidden_mapping_in.bias")


@pytest.mark.parametrize(
    ("sharing", "fits"), [("all", True), ("none", True), ("ffn", False), ("attention", False)]
)
def test_sharing_that_others_do_not_know(tiny_config, sharing, fits):
    config = tiny_config.replace(parameter_sharing=sharing)
    if fits:
        return check_sharing(config, "the software")
    with pytest.raises(UserError, match=f"parameter_sharing='{sharing}' has no .* the software"):
        check_sharing(config, "the software")
