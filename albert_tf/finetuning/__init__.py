"""Fine-tuning: tasks with labelled examples, from Python or for the programs."""
