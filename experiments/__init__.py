"""What was tried, and measured once: kept to be repeated, not installed with the packages."""

from data_pipeline.quiet import prepare_if_program

prepare_if_program()
