"""Distillation losses: functions of a student's and a teacher's tensors, in any precision.

Each returns one float32 value per example or token; callers average over the batch.
"""

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers.forward_pass import MASKED

_EPSILON = 1e-12  # As in PyTorch's cosine_embedding_loss.


def divergence(student: tf.Tensor, teacher: tf.Tensor, temperature: float) -> tf.Tensor:
    """T^2 KL(teacher || student) of softmaxes at temperature T: logits [..., C] -> [...]."""
    # Gradients through softmax(logits / T) scale with 1 / T^2. The factor T^2 compensates, so that
    # the weight of the term does not depend on T (Hinton et al. 2015).
    student, teacher = (
        tf.nn.log_softmax(tf.cast(logits, tf.float32) / temperature)
        for logits in (student, teacher)
    )
    return temperature**2 * tf.reduce_sum(tf.exp(teacher) * (teacher - student), axis=-1)


def binary_divergence(student: tf.Tensor, teacher: tf.Tensor, temperature: float) -> tf.Tensor:
    """T^2 KL(teacher || student) of sigmoids at temperature T: logits [...] -> [...]."""
    student, teacher = (tf.cast(logits, tf.float32) / temperature for logits in (student, teacher))
    target, entropy = tf.sigmoid(teacher), tf.nn.sigmoid_cross_entropy_with_logits
    return temperature**2 * (entropy(target, student) - entropy(target, teacher))


def cosine_distance(student: tf.Tensor, teacher: tf.Tensor) -> tf.Tensor:
    """1 - cos(student, teacher): [..., H] -> [...]."""
    student, teacher = tf.cast(student, tf.float32), tf.cast(teacher, tf.float32)
    product, *squares = (
        tf.reduce_sum(one * other, axis=-1)
        for one, other in ((student, teacher), (student, student), (teacher, teacher))
    )
    return 1.0 - product * tf.math.rsqrt((squares[0] + _EPSILON) * (squares[1] + _EPSILON))


def mean_square(student: tf.Tensor, teacher: tf.Tensor) -> tf.Tensor:
    """The mean squared difference: [..., H] -> [...]."""
    difference = tf.cast(student, tf.float32) - tf.cast(teacher, tf.float32)
    return tf.reduce_mean(tf.square(difference), axis=-1)


def score_difference(
    student: tuple[tf.Tensor, tf.Tensor], teacher: tuple[tf.Tensor, tf.Tensor], mask: tf.Tensor
) -> tf.Tensor:
    """Mean squared difference of attention scores, before the softmax, over all heads and real
    keys: scaled queries and keys [B, N, S, D] of both models, mask [B, S] -> [B, S], by query.
    """
    scores = (
        tf.matmul(tf.cast(query, tf.float32), tf.cast(key, tf.float32), transpose_b=True)
        for query, key in (student, teacher)
    )
    squares = tf.reduce_mean(tf.math.squared_difference(*scores), axis=1)  # [B, Q, S]
    real = tf.cast(mask, tf.float32)
    # A row with only padding gets 0, not NaN.
    count = tf.maximum(tf.reduce_sum(real, axis=1, keepdims=True), 1.0)  # [B, 1]
    return tf.linalg.matvec(squares, real) / count


def relation_divergence(
    student: tf.Tensor, teacher: tf.Tensor, mask: tf.Tensor, num_heads: int
) -> tf.Tensor:
    """KL(teacher || student) of the relations between tokens (MiniLM v2), the mean over `num_heads`
    relation heads: vectors [B, N, S, D], whose N and D may differ by model, mask [B, S] -> [B, S].
    """
    bias = (1.0 - tf.cast(mask, tf.float32))[:, None, None] * MASKED

    def relations(vectors: tf.Tensor) -> tf.Tensor:
        size = vectors.shape[1] * vectors.shape[3] // num_heads
        rows = tf.transpose(tf.cast(vectors, tf.float32), [0, 2, 1, 3])  # [B, S, N, D]
        shape = tf.shape(rows)
        parts = tf.reshape(rows, [shape[0], shape[1], num_heads, size])
        # `parts` is both factors of the product, which is thus scaled by 1 / sqrt(size).
        parts = tf.transpose(parts, [0, 2, 1, 3]) * size**-0.25  # [B, R, S, H / R]
        return tf.matmul(parts, parts, transpose_b=True) + bias

    return tf.reduce_mean(divergence(relations(student), relations(teacher), 1.0), axis=1)
