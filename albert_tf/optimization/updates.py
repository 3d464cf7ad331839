"""The updates of LAMB, AdamW and Muon as pure functions of tensors.

They follow google-research/albert, lamb_optimizer.py and optimization.py:

    m <- beta_1 m + (1 - beta_1) g
    v <- beta_2 v + (1 - beta_2) g^2
    d  = m / (sqrt(v) + epsilon) + weight_decay w          the direction
    w <- w - rate d                                        AdamW
    w <- w - rate (|w| / |d|) d                            LAMB

Muon (Jordan et al., 2024; Liu et al., 2025, for the length) follows torch.optim.Muon with
adjust_lr_fn="match_rms_adamw", which is keras.optimizers.Muon's default:

    m <- momentum m + (1 - momentum) g
    d  = 0.2 sqrt(max(rows, columns)) orthogonalized(momentum m + (1 - momentum) g)
         + weight_decay w
    w <- w - rate d

All tensors of one update are float and have the shape of the weights w, unless a function says
otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class AdamSettings(NamedTuple):
    """Settings of one variable's update, as in the formulas above."""

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    weight_decay: float = 0.01  # 0 for a variable that is not decayed.
    bias_correction: bool = False  # Adam's division by 1 - beta^step; the reference leaves it out.


def adam_update(
    weights: tf.Tensor,
    gradient: tf.Tensor,
    m: tf.Tensor,
    v: tf.Tensor,
    step: tf.Tensor,
    rate: tf.Tensor,
    settings: AdamSettings,
    adapts: bool,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """One update of AdamW or, if `adapts`, of LAMB (You et al., ICLR 2020, first version): the new
    weights, m and v. LAMB's direction is AdamW's, at a length that is `rate` times the norm of the
    weights.

    m, v: the moments before the update, 0 before the first. step: scalar, number of this update,
    from 1. rate: scalar, the learning rate.
    """
    m, v = next_moments(gradient, m, v, settings)
    direction = adam_direction(weights, m, v, bias_corrections(step, weights, settings), settings)
    if adapts:
        rate = trust_ratio(weights, direction) * rate
    return descend(weights, direction, rate), m, v


def muon_update(
    weights: tf.Tensor,
    gradient: tf.Tensor,
    m: tf.Tensor,
    rate: tf.Tensor,
    momentum: float = 0.95,
    weight_decay: float = 0.01,
) -> tuple[tf.Tensor, tf.Tensor]:
    """One update of Muon for a matrix: the new weights and m. m: 0 before the first update."""
    m = momentum * m + (1.0 - momentum) * gradient
    ahead = momentum * m + (1.0 - momentum) * gradient  # Nesterov's momentum.
    return descend(weights, muon_direction(weights, ahead, weight_decay), rate), m


def muon_direction(weights: tf.Tensor, ahead: tf.Tensor, weight_decay: float) -> tf.Tensor:
    """The direction of Muon with the weight decay inside it; `ahead`: Nesterov's momentum."""
    # Its root mean square is about 0.2, as large as AdamW's usually is: one rate fits both.
    length = 0.2 * max(weights.shape) ** 0.5
    return length * orthogonalized(ahead) + weight_decay * weights


def orthogonalized(matrix: tf.Tensor) -> tf.Tensor:
    """A matrix with the singular vectors of the given one, and singular values of about 0.7 to 1.2,
    by five Newton-Schulz steps.
    """
    if matrix.shape[0] > matrix.shape[1]:  # Makes the product x x^T the smaller one.
        return tf.transpose(orthogonalized(tf.transpose(matrix)))
    # Jordan's coefficients: they do not converge to 1, but raise small singular values fastest.
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix / tf.maximum(tf.norm(matrix), 1e-7)
    for _ in range(5):
        square = tf.matmul(x, x, transpose_b=True)
        x = a * x + tf.matmul(b * square + c * tf.matmul(square, square), x)
    return x


def next_moments(
    gradient: tf.Tensor, m: tf.Tensor, v: tf.Tensor, settings: AdamSettings
) -> tuple[tf.Tensor, tf.Tensor]:
    """The new m and v: running means of the gradient and of its square."""
    beta_1, beta_2 = settings.beta_1, settings.beta_2
    next_m = beta_1 * m + (1.0 - beta_1) * gradient
    next_v = beta_2 * v + (1.0 - beta_2) * tf.square(gradient)
    return next_m, next_v


def bias_corrections(
    step: tf.Tensor, weights: tf.Tensor, settings: AdamSettings
) -> tuple[tf.Tensor, tf.Tensor] | None:
    """The scalars 1 - beta_1^step and 1 - beta_2^step in the precision of the weights; None if the
    settings correct nothing.
    """
    if not settings.bias_correction:
        return None
    step = tf.cast(step, weights.dtype)
    return 1.0 - tf.pow(settings.beta_1, step), 1.0 - tf.pow(settings.beta_2, step)


def adam_direction(
    weights: tf.Tensor,
    m: tf.Tensor,
    v: tf.Tensor,
    corrections: tuple[tf.Tensor, tf.Tensor] | None,
    settings: AdamSettings,
) -> tf.Tensor:
    """The direction of Adam with the weight decay inside it; `weights` before the update, m and v
    after it, `corrections` of `bias_corrections`.
    """
    if corrections is not None:
        m, v = m / corrections[0], v / corrections[1]
    return m / (tf.sqrt(v) + settings.epsilon) + settings.weight_decay * weights


def trust_ratio(weights: tf.Tensor, direction: tf.Tensor) -> tf.Tensor:
    """Norm of the weights over norm of the direction, a scalar; 1 if either norm is 0."""
    # As in the reference: a variable that begins at 0 has to move, too.
    weight_norm, direction_norm = tf.norm(weights), tf.norm(direction)
    defined = tf.logical_and(weight_norm > 0, direction_norm > 0)
    return tf.where(
        defined, tf.math.divide_no_nan(weight_norm, direction_norm), tf.ones_like(weight_norm)
    )


def descend(weights: tf.Tensor, direction: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
    """The weights after a step of `rate`, a scalar, times the direction, downhill."""
    return weights - rate * direction
