"""Experiments that were run once, kept so that they can be repeated; pip does not install them."""

from data_pipeline.quiet import prepare_if_program

prepare_if_program()
