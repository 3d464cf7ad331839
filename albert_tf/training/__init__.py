"""Training: where it runs, the loop, its state on disk, and what the user sees."""

from albert_tf.training.best_model import BestModel
from albert_tf.training.evaluation import Evaluator
from albert_tf.training.loop import Hooks, LoopSettings, train
from albert_tf.training.report.progress import StepCost
from albert_tf.training.steps import Stepper
from albert_tf.training.strategy import DISTRIBUTIONS, make_strategy

__all__ = [
    "DISTRIBUTIONS",
    "BestModel",
    "Evaluator",
    "Hooks",
    "LoopSettings",
    "StepCost",
    "Stepper",
    "make_strategy",
    "train",
]
