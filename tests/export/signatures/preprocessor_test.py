"""The preprocessor before it is saved: a single segment, and padding.

Objects can be called once they are loaded; until then by `__call__`.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.loading import load_tokenizer
from export.probes import TEXTS
from export.signatures.preprocessor import PreprocessorModule, expected, pad_to_length
from tests.export.conftest import loaded_as


def test_a_single_segment(vocabulary):
    module = PreprocessorModule(loaded_as(None, vocabulary, 16))
    pack, segment = module.bert_pack_inputs.__call__, tf.ragged.constant([[7, 8]], tf.int32)
    ids = [vocabulary.cls_id, 7, 8, vocabulary.sep_id]
    for found, length in ((pack([segment], tf.constant(14)), 14), (pack([segment]), 16)):
        assert found["input_word_ids"].numpy().tolist() == [ids + [0] * (length - 4)]
        assert found["input_mask"].numpy().tolist() == [[1] * 4 + [0] * (length - 4)]


def test_padding_is_not_always_the_first_piece(tmp_path):
    words = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "[PAD]"]
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    loaded = loaded_as(None, load_tokenizer(str(tmp_path / "vocab.txt")), 16)
    answers = expected(loaded).answers["serving_default"]
    assert (answers["input_word_ids"] == loaded.vocabulary.pad_id).sum() > 16
    text = loaded.text_encoder()
    found = pad_to_length(text(tf.constant(TEXTS)), len(TEXTS), 16, text.pad_id)
    for name, value in answers.items():
        np.testing.assert_array_equal(found[name], value)
