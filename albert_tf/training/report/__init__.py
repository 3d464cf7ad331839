"""Reports of a run: its start-up card, progress, metrics.csv, TensorBoard, and its curves."""
