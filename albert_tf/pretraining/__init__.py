"""Pre-training: data, training and evaluation, from Python or for run_pretraining.

A run of a thousand updates:

    data = pretraining.open_records("records/train", batch_size=32)
    model = AlbertPretrainer(get_preset("albert-small").replace(vocab_size=data.vocab_size))
    settings = RunSettings(
        "runs/small", OptimizerSettings("adamw", learning_rate=0.001), LoopSettings(1000)
    )
    figures = pretraining.pretrain(model, data, settings)

`figures` are those of its last evaluation.
"""

from albert_tf.models import AlbertSpanPretrainer, ReplacedTokenPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.pretraining.data import PretrainingData, open_records, open_text, original_words
from albert_tf.pretraining.evaluation import HeldOut, evaluate_model, evaluate_run
from albert_tf.pretraining.training import pretrain

__all__ = [
    "AlbertSpanPretrainer",
    "HeldOut",
    "PretrainingData",
    "PretrainingObjective",
    "ReplacedTokenPretrainer",
    "evaluate_model",
    "evaluate_run",
    "open_records",
    "open_text",
    "original_words",
    "pretrain",
]
