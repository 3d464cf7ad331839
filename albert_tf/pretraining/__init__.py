"""Pre-training: data, training and evaluation, from Python or for run_pretraining.

data = pretraining.open_records("records/train", batch_size=32)
model = AlbertPretrainer(get_preset("albert-small").replace(vocab_size=data.vocab_size))
settings = RunSettings(
    "runs/small", OptimizerSettings("adamw", learning_rate=0.001), LoopSettings(1000)
)
figures = pretraining.pretrain(model, data, settings)
"""

from albert_tf.pretraining.data import PretrainingData, open_records, open_text, original_words
from albert_tf.pretraining.evaluation import HeldOut, evaluate_model, evaluate_run
from albert_tf.pretraining.training import pretrain
from albert_tf.replaced_tokens import ReplacedTokenPretrainer
from albert_tf.tasks import PretrainingTask

__all__ = [
    "HeldOut",
    "PretrainingData",
    "PretrainingTask",
    "ReplacedTokenPretrainer",
    "evaluate_model",
    "evaluate_run",
    "open_records",
    "open_text",
    "original_words",
    "pretrain",
]
