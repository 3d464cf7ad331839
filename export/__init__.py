"""Turns a trained model folder into a SavedModel that other programs call, and serves it."""

from data_pipeline.quiet import prepare_if_program

prepare_if_program()
