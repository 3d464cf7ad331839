"""Costs of a configuration, worked out by hand."""

from __future__ import annotations

import pytest

from albert_tf.analysis import costs
from albert_tf.models import AlbertPretrainer

# Of tiny_config for 10 tokens: H 16, F 32, N 2, E 8, V 50, two layers.
LAYER_FLOPS = 2 * (4 * 16 * 16 + 2 * 16 * 32) + 4 * 10 * 16
PROJECTION_FLOPS = 2 * 8 * 16


def test_operations_of_the_encoder(tiny_config):
    flops = costs.encoder_flops_per_token
    assert flops(tiny_config, 10) == 2 * LAYER_FLOPS + PROJECTION_FLOPS == 9728
    assert flops(tiny_config.replace(inner_group_num=3), 10) == 6 * LAYER_FLOPS + PROJECTION_FLOPS
    assert flops(tiny_config.replace(embedding_size=16), 10) == 2 * LAYER_FLOPS
    always = tiny_config.replace(embedding_size=16, always_project_embeddings=True)
    assert flops(always, 10) == 2 * LAYER_FLOPS + 2 * 16 * 16
    assert flops(tiny_config.replace(parameter_sharing="none"), 10) == flops(tiny_config, 10)


def test_operations_of_pretraining(tiny_config):
    head = costs.masked_lm_flops_per_prediction(tiny_config)
    assert head == 2 * 16 * 8 + 2 * 8 * 50
    assert costs.pretraining_flops_per_token(tiny_config, 10, 5) == 3 * (9728 + head / 2)


def test_memory_of_training(tiny_config):
    layer = 9 * 16 + 2 * 32 + 2 * 10  # Figures a token: of width H, of width F, probabilities.
    expected = 16 * 1000 + 4 * 2 * layer * 3 * 10
    assert costs.training_bytes(tiny_config, 1000, 3, 10) == expected
    deeper = tiny_config.replace(inner_group_num=2)
    assert costs.training_bytes(deeper, 0, 3, 10) == 4 * 4 * layer * 3 * 10
    again = costs.training_bytes(tiny_config.replace(recompute=True), 1000, 3, 10)
    assert again == 16 * 1000 + 4 * (2 * 2 * 16 + layer) * 3 * 10


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"embedding_size": 16},
        {"embedding_size": 16, "always_project_embeddings": True},
        {"tie_word_embeddings": False},
        {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
        {"parameter_sharing": "none"},
        {"parameter_sharing": "ffn", "type_vocab_size": 3},
        {"parameter_sharing": "attention"},
    ],
    ids=str,
)
def test_parameters_are_those_of_the_model(tiny_config, changes):
    config = tiny_config.replace(**changes)
    counted = dict.fromkeys(costs.count_parameters(config), 0)
    for variable in AlbertPretrainer(config).variables:
        name = variable.name
        parts = {
            "/projection/": "projection",
            "encoder/embeddings/": "embeddings",
            "_attention/": "attention",
            "_ffn/": "feed_forward",
            "/pooler/": "pooler",
            "masked_lm/": "masked_lm",
            "sentence_order/": "sentence_order",
        }
        part = next(part for pattern, part in parts.items() if pattern in name)
        counted[part] += variable.shape.num_elements()
    assert costs.count_parameters(config) == counted
