"""Training: an experiment, the loop inside it, its state on disk, and what the user sees."""

from albert_tf.training.best_model import BestModel
from albert_tf.training.devices import prepare_devices
from albert_tf.training.evaluation import Evaluator
from albert_tf.training.experiment import Experiment, ModelFolders, TrainingData
from albert_tf.training.hooks.base import Callbacks
from albert_tf.training.initial_model import InitialModel
from albert_tf.training.loop import train
from albert_tf.training.report.progress import StepCost
from albert_tf.training.running import run_experiment
from albert_tf.training.settings import DeviceSettings, LoopSettings, OptimizerSettings, RunSettings
from albert_tf.training.steps import Stepper
from albert_tf.training.strategy import DISTRIBUTIONS, make_strategy

__all__ = [
    "DISTRIBUTIONS",
    "BestModel",
    "Callbacks",
    "DeviceSettings",
    "Evaluator",
    "Experiment",
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
    "run_experiment",
    "train",
]
