"""The machine's limit: the matrix products of a feed-forward network, and nothing else."""

import protocol
import tensorflow as tf

TOKENS, REPEATS = 1024, 24  # encoder.py counts their operations.


def build(case):
    """REPEATS times the products of a feed-forward network for TOKENS positions."""
    dtype = tf.as_dtype(case["precision"])
    hidden, inner = protocol.HIDDEN_SIZE, protocol.INTERMEDIATE_SIZE
    rows, up, down = (
        tf.cast(tf.random.normal(shape, stddev=shape[0] ** -0.5), dtype)
        for shape in ([TOKENS, hidden], [hidden, inner], [inner, hidden])
    )

    @tf.function
    def products(rows):
        for _ in range(REPEATS):
            rows = tf.matmul(tf.matmul(rows, up), down)
        return rows

    return lambda: products(rows).numpy()


if __name__ == "__main__":
    protocol.serve(build)
