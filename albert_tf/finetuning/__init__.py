"""Fine-tuning: tasks with labeled examples, from Python or for the programs."""
