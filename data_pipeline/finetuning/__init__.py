"""Converts the files of fine-tuning tasks to model inputs and batches."""
