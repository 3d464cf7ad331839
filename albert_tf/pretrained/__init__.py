"""Weights by name: the presets, their download, and loading weights into a model."""
