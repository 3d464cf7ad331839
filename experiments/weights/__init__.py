"""The shipped weights: how they are made from text, and what they are worth on GLUE."""
