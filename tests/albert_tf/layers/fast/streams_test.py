"""A batch in two streams computes what it does in one."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertPretrainer
from albert_tf.layers.fast.streams import in_streams, stream_sizes
from albert_tf.models.objectives import PretrainingObjective, total_loss
from tests.conformance_cases import BASE

pytestmark = pytest.mark.fast_layers

CONFIG = BASE.replace(num_hidden_layers=3, max_position_embeddings=128)
BATCH, LENGTH, PREDICTIONS = 9, 128, 5  # 1,152 tokens: two streams, of 5 and 4 sequences.


def make_batch() -> dict[str, tf.Tensor]:
    rng = np.random.default_rng(2)
    lengths = rng.integers(PREDICTIONS, LENGTH, BATCH)
    lengths[0] = LENGTH

    def integers(high, *shape):
        return tf.constant(rng.integers(0, high, [BATCH, *shape]), tf.int32)

    return {
        "input_word_ids": integers(CONFIG.vocab_size, LENGTH),
        "input_mask": tf.sequence_mask(lengths, LENGTH, tf.int32),
        "input_type_ids": integers(2, LENGTH),
        "masked_lm_positions": integers(PREDICTIONS, PREDICTIONS),
        "masked_lm_ids": integers(CONFIG.vocab_size, PREDICTIONS),
        "masked_lm_weights": tf.ones([BATCH, PREDICTIONS]),
        "sentence_order_labels": integers(2),
        "example_weights": tf.ones([BATCH]),
    }


def in_one_stream(function):
    """A function of one batch whose number of sequences is not known when the graph is made."""
    signature = {
        name: tf.TensorSpec([None, *value.shape[1:]], value.dtype)
        for name, value in make_batch().items()
    }
    return tf.function(function, input_signature=[signature])


def in_two_streams(function):
    """A function whose batches are known when the graph is made."""
    return tf.function(function, autograph=False)


def mask(*shape: int | None) -> tf.TensorSpec:
    return tf.TensorSpec(shape, tf.int32)


def test_only_large_batches_of_known_size_are_divided(fast_choice):
    def sizes(*shape, **options):
        found = []
        function = tf.function(lambda mask: found.append(stream_sizes(mask)), **options)
        function.get_concrete_function(mask(*shape))
        return found[0]

    assert sizes(8, 128) == [4, 4]
    assert sizes(9, 128) == [5, 4]
    assert sizes(2, 512) == [1, 1]
    assert sizes(1024, 1) == [512, 512]
    assert sizes(8, 127) is None
    assert sizes(1, 2048) is None
    assert sizes(None, 128) is None
    assert sizes(8, None) is None
    assert sizes(8, 128, jit_compile=True) is None
    assert stream_sizes(tf.ones([8, 128], tf.int32)) is None
    fast_choice("off")
    assert sizes(8, 128) is None


@pytest.mark.parametrize("packed", [True, pytest.param(False, marks=pytest.mark.table)])
def test_losses_equal_those_of_one_stream(packed):
    tf.keras.utils.set_random_seed(1)
    task = PretrainingObjective(AlbertPretrainer(CONFIG, packed=packed))

    def loss(batch):
        return total_loss(task, task.ratios(batch, training=False))

    batch = make_batch()
    np.testing.assert_allclose(in_two_streams(loss)(batch), in_one_stream(loss)(batch), atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("recompute", [True, False])
def test_only_forward_passes_are_divided(training, recompute):
    encoder = AlbertEncoder(CONFIG.replace(recompute=recompute))
    seen = []

    def transformer(x, forward, positions, seed):
        seen.append(forward.layout.batch)
        return [x]

    encoder.transformer.call = transformer
    in_two_streams(encoder)(make_batch(), training=training)
    assert seen == ([BATCH] if training else [5, 4])


def test_every_output_is_in_the_order_of_the_batch():
    tf.keras.utils.set_random_seed(1)
    encoder = AlbertEncoder(CONFIG)
    batch = make_batch()
    real = tf.cast(batch["input_mask"], bool)
    two = in_two_streams(encoder)(batch)
    one = encoder(batch)
    np.testing.assert_allclose(two["pooled_output"], one["pooled_output"], atol=1e-6)
    for of_two, of_one in zip(two["encoder_outputs"], one["encoder_outputs"], strict=True):
        np.testing.assert_allclose(of_two[real], of_one[real], atol=1e-5)


def test_parts_of_a_batch_by_example():
    """Of the first tensor come the sizes; None stays None."""
    seen = []

    def double(first, nothing, other):
        seen.append((first.shape.as_list(), nothing))
        return [2 * first[:, 0], {"other": other}]

    @tf.function(autograph=False)
    def run():
        first = tf.range(5)[:, None] + tf.zeros([5, 512], tf.int32)
        return in_streams(double, [first, None, tf.range(5)])

    doubled, kept = run()
    assert doubled.numpy().tolist() == [0, 2, 4, 6, 8]
    assert kept["other"].numpy().tolist() == [0, 1, 2, 3, 4]
    assert seen == [([3, 512], None), ([2, 512], None)]
