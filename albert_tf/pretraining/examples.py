"""Predictions on held-out texts, as readable Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import Batch
from albert_tf.pretraining.data import PretrainingData
from albert_tf.pretraining.evaluation import HeldOut
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.records.record_folder import read_manifest
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.sentencepiece import WORD_MARK

_COUNT = 4


def example_writer(
    model: AlbertPretrainer, data: PretrainingData, held_out: HeldOut
) -> Callable[[], str]:
    """A function that returns the model's predictions on the first held-out texts as Markdown, with
    the weights that the model has when it is called.
    """
    tokenizer = load_tokenizer(data.vocab_file, **data.manifest["tokenizer"])
    folder = held_out.folders[0]
    # A larger batch would be filled up with rows of weight 0, which would be shown as texts.
    batch_size = min(held_out.batch_size, read_manifest(folder)["num_records"])
    batches = pretraining_dataset(folder, batch_size, training=False)
    return lambda: masked_lm_examples(model, next(iter(batches)), tokenizer.pieces)


def masked_lm_examples(model: AlbertPretrainer, batch: Batch, pieces: Sequence[str]) -> str:
    """The first texts of a batch as Markdown, with the model's predictions at their masks.

    Right predictions are bold; wrong ones are struck out, and followed by the right word: "the
    **cat** ~~sits~~ sat".
    """
    # Only the rows that are shown: the model may be large, and this happens at every evaluation.
    batch = {name: values[:_COUNT] for name, values in batch.items()}
    logits = model(batch, training=False)["masked_lm_logits"]
    predicted = tf.argmax(logits, axis=-1, output_type=tf.int32).numpy()  # [B, P]
    arrays = {name: values.numpy() for name, values in batch.items()}
    texts = []
    for row in range(len(predicted)):
        length = int(arrays["input_mask"][row].sum())
        text = [pieces[word] for word in arrays["input_word_ids"][row, :length]]
        for place, position in enumerate(arrays["masked_lm_positions"][row].tolist()):
            if arrays["masked_lm_weights"][row, place]:
                truth, guess = arrays["masked_lm_ids"][row, place], predicted[row, place]
                right, said = pieces[truth], pieces[guess]
                text[position] = f" **{right}**" if truth == guess else f" ~~{said}~~ {right}"
        texts.append("".join(text).replace(WORD_MARK, " ").strip())
    return "\n\n".join(texts)
