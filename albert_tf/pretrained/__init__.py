"""Weights by name: the presets, their download, and the loading of any weights into a model."""
