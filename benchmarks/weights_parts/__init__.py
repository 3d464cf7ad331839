"""The parts of the benchmark of the shipped weights: tasks, fine-tuning, baselines, intervals."""
