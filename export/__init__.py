"""Turns a trained model folder into a SavedModel that other programs call, and serves it."""
