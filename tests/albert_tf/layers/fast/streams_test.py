"""A batch in two streams computes what it does in one."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertEncoder, AlbertPretrainer
from albert_tf.layers.fast.streams import in_streams, stream_sizes
from albert_tf.layers.operations import fold_in
from albert_tf.tasks import PretrainingTask, total_loss

CONFIG = AlbertConfig(
    vocab_size=30,
    embedding_size=4,
    hidden_size=8,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=128,
)
BATCH, LENGTH, PREDICTIONS = 9, 128, 5  # 1,152 tokens: two streams, of 5 and 4 sequences.


@pytest.fixture(autouse=True)
def fast_form(fast_choice):
    """Without it a batch is one stream."""
    fast_choice("on")


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


@pytest.mark.parametrize("groups", [1, pytest.param(3, marks=pytest.mark.one_stack)])
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "padded"])
def test_losses_and_gradients_equal_those_of_one_stream(packed, groups):
    config = CONFIG.replace(num_hidden_groups=groups)
    tf.keras.utils.set_random_seed(1)
    model = AlbertPretrainer(config, packed=packed)
    task = PretrainingTask(model)

    def step(batch):
        with tf.GradientTape() as tape:
            loss = total_loss(task, task.ratios(batch, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    two = in_two_streams(step)(make_batch())
    one = in_one_stream(step)(make_batch())
    np.testing.assert_allclose(two[0], one[0], atol=1e-6)
    for variable, of_two, of_one in zip(model.trainable_variables, two[1], one[1], strict=True):
        np.testing.assert_allclose(of_two, of_one, atol=1e-6, err_msg=variable.name)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("recompute", [True, False])
def test_training_that_recomputes_activations_is_not_divided(training, recompute):
    encoder = AlbertEncoder(CONFIG.replace(recompute=recompute))
    seen = []

    def transformer(x, forward, positions, seed):
        seen.append(forward.layout.batch)
        return [x]

    encoder.transformer.call = transformer
    in_two_streams(encoder)(make_batch(), training=training)
    assert len(seen) == (1 if training and recompute else 2)


@pytest.mark.parametrize("training", [True, False])
def test_every_output_is_in_the_order_of_the_batch(training):
    tf.keras.utils.set_random_seed(1)
    encoder = AlbertEncoder(CONFIG)
    batch = make_batch()
    real = tf.cast(batch["input_mask"], bool)
    two = in_two_streams(encoder)(batch, training=training)
    one = encoder(batch)
    np.testing.assert_allclose(two["pooled_output"], one["pooled_output"], atol=1e-6)
    for of_two, of_one in zip(two["encoder_outputs"], one["encoder_outputs"], strict=True):
        np.testing.assert_allclose(of_two[real], of_one[real], atol=1e-5)


def test_streams_draw_their_own_dropout_masks_from_the_seed():
    config = CONFIG.replace(hidden_dropout_prob=0.5)
    encoder = AlbertEncoder(config)
    batch = {name: tf.repeat(value[:1], BATCH, axis=0) for name, value in make_batch().items()}

    def output(seed):
        outputs = in_two_streams(encoder)(batch, training=True, seed=tf.constant(seed, tf.int32))
        return outputs["sequence_output"]

    first = output([1, 2])
    np.testing.assert_array_equal(first, output([1, 2]))
    assert not np.allclose(first, output([1, 3]))
    # The same sequence at the same place of both streams.
    assert not np.allclose(first[0], first[5])


def test_parts_of_a_batch_by_example():
    """Of the first tensor come the sizes; None stays None; each part has a seed of its own."""
    seen = []

    def double(first, nothing, other, seed):
        seen.append((first.shape.as_list(), nothing, seed))
        return [2 * first[:, 0], {"other": other}]

    @tf.function(autograph=False)
    def run(seed):
        first = tf.range(5)[:, None] + tf.zeros([5, 512], tf.int32)
        return in_streams(double, [first, None, tf.range(5)], seed)

    doubled, kept = run(tf.constant([1, 2]))
    assert doubled.numpy().tolist() == [0, 2, 4, 6, 8]
    assert kept["other"].numpy().tolist() == [0, 1, 2, 3, 4]
    assert [part[:2] for part in seen] == [([3, 512], None), ([2, 512], None)]
    assert seen[0][2] is not seen[1][2]


def test_one_stream_has_the_seed_of_the_first():
    seed = tf.constant([1, 2])
    assert in_streams(lambda x, seed: seed, [tf.ones([2, 2])], None) is None
    found = in_streams(lambda x, seed: seed, [tf.ones([2, 2])], seed)
    np.testing.assert_array_equal(found, fold_in(seed, 0))
