"""The released base v2 graph at full size, with weights made by the rule of goldens' README."""

import zlib
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertPretrainer, get_preset
from albert_tf.checkpoints.names import variable_names
from albert_tf.variable_names import variable_name

GOLDEN = Path(__file__).parents[1] / "goldens" / "hub_base_v2"


def made_up(name: str, shape: list[int]) -> np.ndarray:
    """A weight, a function of its published name."""
    random = np.random.RandomState(zlib.crc32(name.encode()))
    value = 0.02 * random.standard_normal(shape)
    return (value + 1 if name.endswith("gamma") else value).astype(np.float32)


@pytest.mark.usefixtures("plain_and_fast")
@pytest.mark.parametrize("packed", [False, True])
def test_the_released_graph(packed):
    model = AlbertPretrainer(get_preset("albert-base-v2"), packed=packed)
    table = variable_names(model)
    for variable in model.variables:
        name = table[variable_name(variable)].google
        if name.startswith(("bert/", "cls/predictions/")):
            variable.assign(made_up(name, variable.shape.as_list()))
    with np.load(GOLDEN / "outputs.npz") as file:
        golden = dict(file)
    inputs = {
        "input_word_ids": tf.constant(golden["input_ids"]),
        "input_mask": tf.constant(golden["input_mask"]),
        "input_type_ids": tf.constant(golden["segment_ids"]),
        "masked_lm_positions": tf.constant(golden["mlm_positions"]),
    }
    hidden, outputs = model.encoder(inputs), model(inputs)
    real = golden["input_mask"][..., None]
    logits = tf.reshape(outputs["masked_lm_logits"], [6, -1]).numpy()
    for value, expected in (
        (hidden["sequence_output"] * real, golden["sequence_output"] * real),
        (hidden["pooled_output"], golden["pooled_output"]),
        (logits[:, :64], golden["mlm_logits_first64"]),
    ):
        np.testing.assert_allclose(value, expected, atol=1e-4, rtol=0)
    np.testing.assert_allclose(logits.sum(axis=1), golden["mlm_logits_sum"], rtol=1e-4)
