"""Text to TFRecord to tf.data: tokenizing, pre-training records and classification inputs."""
