"""Text to batches in a tf.data graph, without records in between."""
