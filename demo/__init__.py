"""The demonstration: the whole workflow on real text; each step is an ordinary program."""

from data_pipeline.quiet import prepare_if_program

prepare_if_program()
