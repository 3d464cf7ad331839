"""The demonstration: the whole job on real text, each step an ordinary binary."""

from data_pipeline.quiet import prepare_if_program

prepare_if_program()
