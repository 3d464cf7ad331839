"""Fine-tuning tasks, a class for each form; `table.TASKS` has them by name."""
