"""A program that still holds an iterator ends all the same."""

import subprocess
import sys

PROGRAM = """
import tensorflow as tf
from data_pipeline.records.python_calls import items_until_exit, until_exit

def numbers():
    for number in range(1000):
        sum(range(10_000_000))  # Busy, as a maker of examples is.
        yield number

def double(number):
    return 2 * number

data = tf.data.Dataset.from_generator(
    items_until_exit(numbers), output_signature=tf.TensorSpec([], tf.int64)
)
data = data.map(lambda number: tf.numpy_function(until_exit(double), [number], tf.int64))
iterator = iter(data.prefetch(100))
print(int(next(iterator)), int(next(iterator)))
"""


def test_python_ends_while_tensorflow_reads_ahead():
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "0 2\n"
