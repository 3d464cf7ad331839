"""Packed and padded layouts hold the same tokens, whatever the mask."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as np_strategies

from albert_tf import AlbertClassifier, AlbertEncoder
from albert_tf.layers.fast.operations import operations_for
from albert_tf.layers.packing import PackedLayout, PaddedLayout, make_layout
from albert_tf.machine import targets
from tests.conformance_cases import BASE

pytestmark = pytest.mark.fast_layers

CONFIG = BASE.replace(vocab_size=30, hidden_size=8, max_position_embeddings=9)
# Any mask, with holes and empty rows.
masks = np_strategies.arrays(
    np.int32, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=st.integers(0, 1)
)


def kept(mask: np.ndarray) -> np.ndarray:
    """The positions that are rows: real tokens, and the first of every row that has any."""
    rows = mask.astype(bool)
    rows[:, 0] |= rows.any(axis=1)
    return rows


@given(masks)
@settings(max_examples=60)
def test_rows_are_the_real_tokens_in_order(mask):
    layout = PackedLayout(tf.constant(mask))
    values = np.arange(1, mask.size * 2 + 1, dtype=np.float32).reshape(*mask.shape, 2)
    rows = layout.to_rows(tf.constant(values))
    np.testing.assert_array_equal(rows, values[kept(mask)])
    np.testing.assert_array_equal(layout.to_padded(rows), values * kept(mask)[..., None])
    positions = np.tile(np.arange(mask.shape[1])[::-1], [len(mask), 1]).astype(np.int32)
    expected = (values * kept(mask)[..., None])[:, ::-1].reshape(-1, 2)
    np.testing.assert_array_equal(layout.gather_positions(rows, tf.constant(positions)), expected)


@given(masks, st.integers(0, 2**31 - 1))
@settings(max_examples=6)
def test_outputs_and_gradients_equal_those_of_padded_execution(mask, seed):
    tf.keras.utils.set_random_seed(3)
    rng = np.random.default_rng(seed)
    inputs = {
        "input_word_ids": tf.constant(rng.integers(0, 30, mask.shape), tf.int32),
        "input_mask": tf.constant(mask),
        "input_type_ids": tf.constant(rng.integers(0, 2, mask.shape), tf.int32),
    }
    weights = kept(mask)[..., None] * rng.normal(size=[*mask.shape, 8]).astype(np.float32)
    has_token = mask.any(axis=1).astype(np.float32)[:, None]
    results = []
    padded, packed = AlbertEncoder(CONFIG, packed=False), AlbertEncoder(CONFIG, packed=True)
    packed.set_weights(padded.get_weights())
    for encoder in (padded, packed):
        with tf.GradientTape() as tape:
            outputs = encoder(inputs)
            loss = tf.reduce_sum(outputs["sequence_output"] * weights)
            loss += tf.reduce_sum(outputs["pooled_output"] * has_token)
        gradients = tape.gradient(loss, encoder.trainable_variables)
        results.append((outputs, [tf.convert_to_tensor(gradient) for gradient in gradients]))
    (left, left_gradients), (right, right_gradients) = results
    keep = kept(mask)[..., None]
    np.testing.assert_allclose(
        left["sequence_output"] * keep, right["sequence_output"] * keep, atol=1e-5
    )
    np.testing.assert_allclose(
        left["pooled_output"] * has_token, right["pooled_output"] * has_token, atol=1e-5
    )
    for one, other in zip(left_gradients, right_gradients):
        scale = max(1.0, float(tf.reduce_max(tf.abs(one))))
        np.testing.assert_allclose(one / scale, other / scale, atol=1e-5)


def test_a_row_without_any_token_gives_finite_answers_and_no_gradient():
    model = AlbertClassifier(CONFIG, 2)
    zeros = tf.zeros([2, 5], tf.int32)
    inputs = {"input_word_ids": zeros, "input_mask": zeros, "input_type_ids": zeros}
    with tf.GradientTape() as tape:
        logits = model(inputs, training=True)
        loss = tf.reduce_sum(logits**2)
    assert np.isfinite(logits).all()
    variables = [
        *model.encoder.embeddings.trainable_variables,
        *model.encoder.transformer.trainable_variables,
    ]
    for gradient in tape.gradient(loss, variables):
        assert not np.any(tf.convert_to_tensor(gradient))


def test_the_layout_is_chosen_by_where_it_runs():
    mask, seen = tf.ones([2, 3], tf.int32), []

    def run(mask):
        seen.append(type(make_layout(mask)))
        return mask

    run(mask)
    tf.function(run)(mask)
    tf.function(run, jit_compile=True)(mask)
    tf.function(lambda mask: tf.function(run)(mask), jit_compile=True)(mask)
    assert seen == [PackedLayout, PackedLayout, PaddedLayout, PaddedLayout]
    assert type(make_layout(mask, packed=False)) is PaddedLayout


def test_a_packed_model_under_xla_says_what_to_do():
    ids = tf.ones([2, 5], tf.int32)
    inputs = {"input_word_ids": ids, "input_mask": ids}
    message = "packed=True makes shapes depend on .*packed=False"
    with pytest.raises(Exception, match=message):
        tf.function(AlbertEncoder(CONFIG, packed=True).call, jit_compile=True)(inputs)
    model = AlbertClassifier(CONFIG, 2, packed=True)
    model.compile("sgd", lambda label, logits: logits, jit_compile=True)
    with pytest.raises(Exception, match=message):
        model.fit(inputs, tf.zeros([2]), verbose=0)
    tf.function(AlbertEncoder(CONFIG).call, jit_compile=True)(inputs)


def test_padded_on_gpus_and_tpus_unless_asked_otherwise(monkeypatch):
    mask = tf.ones([2, 3], tf.int32)
    with monkeypatch.context() as on_gpu:
        on_gpu.setattr(targets, "has_gpu", lambda: True)
        assert type(make_layout(mask)) is PaddedLayout
        assert type(make_layout(mask, packed=True)) is PackedLayout
    monkeypatch.setattr(targets, "shapes_must_be_static", lambda: True)
    assert type(make_layout(mask)) is PaddedLayout


def test_packed_rows_come_in_few_numbers_in_training():
    """Since every new number is compiled."""
    mask = np.zeros([6, 40], np.int32)
    rows = set()
    multiple = operations_for(with_gradient=True).row_multiple
    for real in range(1, 240):
        mask.flat[:real] = 1
        layout = make_layout(tf.constant(mask), multiple, packed=True)
        places = layout.to_rows(tf.range(240)).numpy()
        assert set(range(real)) <= set(places)
        rows.add(len(places))
    assert rows == {64, 128, 192, 240}
