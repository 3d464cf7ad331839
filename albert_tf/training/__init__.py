"""Training: an experiment, the loop inside it, its state on disk, and what the user sees."""

from albert_tf.training.best_model import BestModel
from albert_tf.training.devices import DeviceSettings, prepare_devices
from albert_tf.training.evaluation import Evaluator
from albert_tf.training.experiment import Experiment, ModelFolders, RunSettings, TrainingData
from albert_tf.training.initial_model import InitialModel
from albert_tf.training.loop import Hooks, train
from albert_tf.training.loop_settings import LoopSettings
from albert_tf.training.optimizers import OptimizerSettings
from albert_tf.training.report.progress import StepCost
from albert_tf.training.steps import Stepper
from albert_tf.training.strategy import DISTRIBUTIONS, make_strategy

__all__ = [
    "DISTRIBUTIONS",
    "BestModel",
    "DeviceSettings",
    "Evaluator",
    "Experiment",
    "Hooks",
    "InitialModel",
    "LoopSettings",
    "ModelFolders",
    "OptimizerSettings",
    "RunSettings",
    "StepCost",
    "Stepper",
    "TrainingData",
    "make_strategy",
    "prepare_devices",
    "train",
]
