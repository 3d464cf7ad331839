"""Turns text into batches in a tf.data graph, without writing records."""
