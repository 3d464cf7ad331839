"""The files of tasks to model inputs and batches."""
