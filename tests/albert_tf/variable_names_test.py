"""Names of variables."""

import tensorflow as tf

from albert_tf.variable_names import distinct, variable_name


def test_without_tensorflows_suffix():
    with tf.name_scope("encoder/pooler"):
        variable = tf.Variable(1.0, name="kernel")
    assert variable.name == "encoder/pooler/kernel:0"
    assert variable_name(variable) == "encoder/pooler/kernel"


def test_names_that_come_again_get_a_number():
    assert distinct(["a", "b", "a", "c", "a"]) == ["a", "b", "a_1", "c", "a_2"]
    assert distinct([]) == []
