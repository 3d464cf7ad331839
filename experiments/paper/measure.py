"""Measures a pre-trained model on held-out records, including those of other sentence objectives.

    python -m experiments.paper.measure --model=run/model --eval_data=heldout --output=measured.json

For the objective that a model was trained on, its own head is used. For others, the encoder is
frozen, and a logistic regression is trained on the pooled outputs of training pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from albert_tf.checkpoints import native
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import SENTENCE_OUTPUTS
from albert_tf.pretraining import HeldOut
from data_pipeline.command_line import flags, run_binary
from data_pipeline.files import atomic_files
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.records.record_folder import read_manifest

FLAGS = flags.FLAGS
_BATCH_SIZE = 64


def define_flags() -> None:
    """Flags of this program."""
    flags.group("What is measured")
    flags.DEFINE_string("model", None, "Model folder of a pre-trained model.", required=True)
    flags.DEFINE_string("objective", "sop", "Sentence objective that the model was trained on.")
    flags.DEFINE_list("train_data", [], "Training records of sentence objectives, for new heads.")
    flags.DEFINE_list("eval_data", None, "Folders of held-out records.", required=True)
    flags.DEFINE_integer("num_pairs", 20000, "Training pairs of a new head.", lower_bound=2)
    flags.DEFINE_string("output", None, "JSON file to write the figures to.", required=True)


def main() -> None:
    """Writes {"nsp_accuracy": 0.9, ...}; masked-LM figures are prefixed with the objective."""
    model: Any = native.load_model(FLAGS.model)
    train_data = {objective_of(folder): folder for folder in FLAGS.train_data}
    figures: dict[str, float] = {}
    for folder in FLAGS.eval_data:
        objective = objective_of(folder)
        found = HeldOut([folder]).evaluator(model, None)()
        # Without --train_data, the records have the model's objective and come from another domain.
        prefix = objective if train_data else "more"
        for name in ("masked_lm_loss", "masked_lm_accuracy"):
            figures[f"{prefix}_{name}"] = found[name]
        if objective in train_data and objective != "none":
            accuracy = found[f"{SENTENCE_OUTPUTS[objective]}_accuracy"]
            if objective != FLAGS.objective:
                accuracy = new_head_accuracy(model, train_data[objective], folder)
            figures[f"{objective}_accuracy"] = accuracy
    atomic_files.write_json(FLAGS.output, figures)


def objective_of(folder: str) -> str:
    """The sentence objective of a folder of records."""
    return read_manifest(folder)["settings"]["sentence_objective"]


def new_head_accuracy(model: AlbertPretrainer, train_data: str, eval_data: str) -> float:
    """The accuracy on held-out pairs of a linear head on the frozen pooled output."""
    batches = itertools.islice(
        pretraining_dataset(train_data, _BATCH_SIZE, seed=0), FLAGS.num_pairs // _BATCH_SIZE + 1
    )
    head = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    head.fit(*pooled_outputs(model, batches))
    held_out = pretraining_dataset(eval_data, _BATCH_SIZE, training=False)
    return float(head.score(*pooled_outputs(model, held_out)))


def pooled_outputs(
    model: AlbertPretrainer, batches: Iterable[dict[str, tf.Tensor]]
) -> tuple[np.ndarray, np.ndarray]:
    """Pooled outputs [N, H] and labels [N] of the pairs with a nonzero weight."""
    compute = tf.function(lambda batch: model(batch, training=False)["pooled_output"])
    outputs, labels = [], []
    for batch in batches:
        counts = batch["example_weights"].numpy() > 0
        outputs.append(compute(batch).numpy()[counts].astype(np.float32))
        labels.append(batch["sentence_order_labels"].numpy()[counts])
    return np.concatenate(outputs), np.concatenate(labels)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
