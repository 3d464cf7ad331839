"""Models from text to answers, and the layer that makes a model's inputs of text."""
