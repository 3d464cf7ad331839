"""Names of variables."""

import tensorflow as tf

from albert_tf.variable_names import variable_name


def test_without_tensorflows_suffix():
    with tf.name_scope("encoder/pooler"):
        variable = tf.Variable(1.0, name="kernel")
    assert variable.name == "encoder/pooler/kernel:0"
    assert variable_name(variable) == "encoder/pooler/kernel"
