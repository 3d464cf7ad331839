"""Scores of finished predictions, by scikit-learn and scipy; a table lists those of each task."""

from albert_tf.metrics.scorers import (
    SCORED_GLUE_TASKS,
    SCORERS,
    Scorer,
    Scores,
    glue_score,
    glue_task_score,
    is_better,
    remarks,
)

__all__ = [
    "SCORED_GLUE_TASKS",
    "SCORERS",
    "Scorer",
    "Scores",
    "glue_score",
    "glue_task_score",
    "is_better",
    "remarks",
]
