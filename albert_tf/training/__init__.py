"""Training: where it runs, the loop, its state on disk, and what the user sees."""
