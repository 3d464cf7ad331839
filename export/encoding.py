"""The encoding of texts in Python, as in training. Exported graphs are compared with it; the two
share nothing but the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from data_pipeline.finetuning.examples import TextExample
from data_pipeline.finetuning.features import encode_texts
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.sentencepiece import WORD_MARK
from data_pipeline.tokenizers.text_graph import MASK_TEXT


def encode_batch(
    vocabulary: Tokenizer,
    texts: Sequence[str],
    max_seq_length: int,
    text_pairs: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """The inputs of a model for B texts: input_word_ids, input_mask and input_type_ids, int32
    [B, S], padded to the longest of the batch. `max_seq_length` includes special tokens.

    An empty second text means that there is none; `text_pairs=None` means that no text has one.
    """
    examples = text_examples(texts, text_pairs)
    inputs = encode_texts(examples, vocabulary, max_seq_length).inputs()
    longest = int(inputs["input_mask"].sum(axis=1).max())
    return {name: value[:, :longest] for name, value in inputs.items()}


def text_examples(
    texts: Sequence[str], text_pairs: Sequence[str] | None = None
) -> list[TextExample]:
    """Texts, or pairs of texts, as examples without labels."""
    pairs: Sequence[str | None] = [None] * len(texts) if text_pairs is None else text_pairs
    return [
        TextExample(str(row), *pair, None, "texts", row)
        for row, pair in enumerate(zip(texts, pairs))
    ]


def encode_masked_batch(
    vocabulary: Tokenizer, texts: Sequence[str], max_seq_length: int
) -> dict[str, np.ndarray]:
    """`encode_batch` for texts in which a literal "[MASK]" stands for the mask token."""
    pieces = [encode_with_masks(vocabulary, text)[: max_seq_length - 2] for text in texts]
    rows = [[vocabulary.cls_id, *ids, vocabulary.sep_id] for ids in pieces]
    mask = padded([[1] * len(row) for row in rows], np.int32(0))
    return {
        "input_word_ids": padded(rows, np.int32(vocabulary.pad_id)),
        "input_mask": mask,
        "input_type_ids": np.zeros_like(mask),
    }


def encode_with_masks(vocabulary: Tokenizer, text: str) -> list[int]:
    """Ids of a text without special tokens, except a mask at each literal "[MASK]"."""
    ids: list[int] = []
    for index, part in enumerate(text.split(MASK_TEXT)):
        part_ids = list(vocabulary.encode(part))
        if index:
            ids.append(vocabulary.mask_id)
            # Text directly after a mask, without a space, does not start a word: text_graph.py.
            glued = part[:1] not in tuple(" \t\n\r\f")
            if glued and part_ids and vocabulary.pieces[part_ids[0]] == WORD_MARK:
                part_ids = part_ids[1:]
        ids.extend(part_ids)
    return ids


def padded(rows: Sequence[Sequence], filler: Any) -> np.ndarray:
    """Rows of different lengths as a padded array: [["a"], ["b", "c"]] -> [N, W]."""
    shape = len(rows), max(map(len, rows))
    array = np.full(shape, filler, object if isinstance(filler, bytes) else filler.dtype)
    for row, values in enumerate(rows):
        array[row, : len(values)] = values
    return array
