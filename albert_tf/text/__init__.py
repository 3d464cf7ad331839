"""Models that take text, and the layer that turns text into a model's inputs."""
