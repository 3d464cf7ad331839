"""Speed and memory, compared with other libraries and with the limits of the machine."""

from data_pipeline.quiet import prepare_if_program

prepare_if_program()
