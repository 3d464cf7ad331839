"""The machine's limit: only the matrix products of a feed-forward network."""

import protocol
import tensorflow as tf

TOKENS, REPEATS = 1024, 24  # Keep in step with the operations counted in encoder.py.


def build(case):
    """The products of a feed-forward network for TOKENS positions, REPEATS times."""
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
