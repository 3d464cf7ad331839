"""The one table of names: every variable of every model has a row."""

from __future__ import annotations

import pytest

from albert_tf import models
from albert_tf.checkpoints.names import variable_names
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


CHANGES = [
    {"num_hidden_groups": 2, "inner_group_num": 2},
    {"parameter_sharing": "none", "embedding_size": 16},
    {"embedding_size": 16, "always_project_embeddings": True},
    {"tie_word_embeddings": False},
]


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        *((kind, {}) for kind in KINDS),
        *((models.AlbertPretrainer, changes) for changes in CHANGES),
        (models.AlbertSpanPretrainer, CHANGES[-1]),
    ],
)
def test_a_row_for_each_variable_and_no_other(tiny_config, kind, changes):
    model = kind(tiny_config.replace(**changes), **KINDS[kind])
    rows = variable_names(model)
    assert set(rows) == {variable_name(variable) for variable in model.variables}
    assert all(name == row.ours for name, row in rows.items())
    for names in zip(*((row.google, row.huggingface) for row in rows.values())):
        stored = [name for name in names if name is not None]
        assert len(stored) == len(set(stored))
