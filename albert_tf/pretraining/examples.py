"""Predictions on held-out text that a person can read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from albert_tf.models import AlbertPretrainer
from albert_tf.tasks import Batch

_COUNT = 4


def masked_lm_examples(
    model: AlbertPretrainer, batch: Batch, pieces: Callable[[Sequence[int]], list[str]]
) -> str:
    """Some texts of a batch as Markdown, with what the model puts in place of the masks.

    Right predictions are bold; wrong ones are struck out, followed by what the text says.

    Args:
      batch: see data_pipeline.pretraining.dataset.pretraining_dataset.
      pieces: from ids to pieces.
    """
    batch = {name: values[:_COUNT] for name, values in batch.items()}
    logits = model(batch, training=False)["masked_lm_logits"]
    predicted = tf.argmax(logits, axis=-1, output_type=tf.int32).numpy()  # [B, P]
    arrays = {name: values.numpy() for name, values in batch.items()}
    texts = []
    for row in range(len(predicted)):
        length = int(arrays["input_mask"][row].sum())
        text = pieces(arrays["input_word_ids"][row, :length].tolist())
        for place, position in enumerate(arrays["masked_lm_positions"][row].tolist()):
            if arrays["masked_lm_weights"][row, place]:
                truth, guess = int(arrays["masked_lm_ids"][row, place]), int(predicted[row, place])
                right, said = pieces([truth])[0], pieces([guess])[0]
                text[position] = f" **{right}**" if truth == guess else f" ~~{said}~~ {right}"
        texts.append("".join(text).replace("\u2581", " ").strip())
    return "\n\n".join(texts)
