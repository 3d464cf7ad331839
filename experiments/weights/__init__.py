"""The shipped weights: how they are trained from text, and how well they do on GLUE."""
