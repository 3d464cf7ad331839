"""Makes this folder: presets that KerasHub itself writes, with random weights and its outputs.

    PEERS/keras/bin/python tests/goldens/kerashub/make.py

Run with keras-hub 0.32.0 and Keras 3.15.1. Vocabularies are left out: nothing here is text.
"""

from pathlib import Path

import keras
import keras_hub
import numpy as np

FOLDER = Path(__file__).parent


def backbone(num_groups: int) -> keras_hub.models.AlbertBackbone:
    return keras_hub.models.AlbertBackbone(
        vocabulary_size=20,
        num_layers=4,
        num_heads=2,
        num_groups=num_groups,
        num_inner_repetitions=num_groups,
        embedding_dim=8,
        hidden_dim=12,
        intermediate_dim=20,
        dropout=0.1,
        max_sequence_length=16,
        name="albert_backbone",
    )


keras.utils.set_random_seed(0)
ids = np.array([[2, 7, 4, 19, 3, 8, 3, 0], [2, 6, 5, 4, 3, 0, 0, 0]], np.int32)
inputs = {
    "token_ids": ids,
    "padding_mask": (ids != 0).astype(np.int32),
    "segment_ids": np.array([[0, 0, 0, 0, 0, 1, 1, 0], [0] * 8], np.int32),
}
positions = np.array([[2, 1], [3, 2]], np.int32)
tasks = {
    "masked_lm": keras_hub.models.AlbertMaskedLM(backbone(2)),
    "classifier": keras_hub.models.AlbertTextClassifier(backbone(1), num_classes=3),
}
values = np.random.default_rng(0)
for name, task in tasks.items():
    # Not zeros and ones, which weights that are swapped would share.
    task.set_weights([each + values.normal(0, 0.5, each.shape) for each in task.get_weights()])
    task.save_to_preset(str(FOLDER / name))
    asked = {**inputs, "mask_positions": positions} if name == "masked_lm" else inputs
    outputs = {key: np.asarray(value) for key, value in task.backbone(inputs).items()}
    np.savez(FOLDER / name / "outputs.npz", **asked, **outputs, logits=np.asarray(task(asked)))
