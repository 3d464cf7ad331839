"""Starting weights for the plateau's trials: parts of make_starting_weights', or random."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from albert_tf.checkpoints import native, vocabulary
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.starting_weights.informed import position_size


def write_parts(informed: Path) -> None:
    """Writes the model folders of PARTS next to the one of make_starting_weights; each has random
    weights with one change.
    """
    whole = native.load_model(str(informed))
    metadata = native.read_metadata(str(informed))
    tokenizer = json.loads((informed / vocabulary.SETTINGS).read_text())
    for name, change in PARTS.items():
        keras.utils.set_random_seed(0)
        model = AlbertPretrainer(whole.config)
        change(model, whole)
        vocab_file = native.vocabulary_file(str(informed))
        native.save(model, str(informed.with_name(name)), metadata, vocab_file, tokenizer)


def take_words(model: AlbertPretrainer, whole: AlbertPretrainer) -> None:
    """Takes the word vectors, but leaves positions and heads random."""
    ours, theirs = model.encoder.embeddings, whole.encoder.embeddings
    size = position_size(whole.config.embedding_size, whole.config.head_size)
    table = theirs.word_embeddings.numpy()  # [V, E]
    table[:, -size:] = ours.word_embeddings.numpy()[:, -size:]
    ours.word_embeddings.assign(table)
    _take_rest(model, whole)


def take_positions(model: AlbertPretrainer, whole: AlbertPretrainer) -> None:
    """Takes the positions and the attention heads that read them, but leaves words random."""
    ours, theirs = model.encoder.embeddings, whole.encoder.embeddings
    size = position_size(whole.config.embedding_size, whole.config.head_size)
    table = ours.word_embeddings.numpy()  # [V, E]
    table[:, -size:] = 0
    ours.word_embeddings.assign(table)
    ours.position_embeddings.assign(theirs.position_embeddings)
    blocks = (each.encoder.transformer.attention_blocks for each in (model, whole))
    for block, other in zip(*blocks):
        block.query.kernel.assign(other.query.kernel)
        block.key.kernel.assign(other.key.kernel)
    _take_rest(model, whole)


def _take_rest(model: AlbertPretrainer, whole: AlbertPretrainer) -> None:
    """Takes what both parts need: the projection, which separates them, and word frequencies."""
    _projection(model).kernel.assign(_projection(whole).kernel)
    model.masked_lm.output_bias.assign(whole.masked_lm.output_bias)


def _projection(model: AlbertPretrainer) -> keras.layers.Dense:
    projection = model.encoder.embeddings.projection
    assert projection  # The trials' architecture has E < H.
    return projection


def enlarge_projection(model: AlbertPretrainer, whole: AlbertPretrainer) -> None:
    """Scales the random projection so that its outputs have variance 1, like its inputs."""
    kernel = _projection(model).kernel
    kernel.assign(kernel / (np.std(kernel.numpy()) * np.sqrt(whole.config.embedding_size)))


PARTS = {"words": take_words, "positions": take_positions, "projection": enlarge_projection}
