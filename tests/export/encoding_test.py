"""The Python encoding: layout, truncation and masks, spelled out."""

import numpy as np

from export.encoding import encode_batch, encode_masked_batch, encode_with_masks


def test_layout_of_a_pair_beside_a_single_text(vocabulary):
    batch = encode_batch(vocabulary, ["the cat", "the cat"], 32, ["dog", ""])
    first, second = vocabulary.encode("the cat"), vocabulary.encode("dog")
    pair = [2, *first, 3, *second, 3]
    single = [2, *first, 3]
    assert batch["input_word_ids"].tolist() == [pair, single + [0] * (len(pair) - len(single))]
    assert batch["input_type_ids"][0].tolist() == [0] * len(single) + [1] * (len(second) + 1)
    assert not batch["input_type_ids"][1].any()
    assert batch["input_mask"].sum(axis=1).tolist() == [len(pair), len(single)]


def test_masks_are_read(vocabulary):
    ids = encode_with_masks(vocabulary, "the[MASK] cat[MASK].")
    assert ids.count(vocabulary.mask_id) == 2
    assert vocabulary.ids_to_pieces(ids)[-2:] == ["[MASK]", "."]
    assert [i for i in ids if i != vocabulary.mask_id] == vocabulary.encode("the cat.")


def test_without_masks_both_encodings_are_the_same(vocabulary):
    texts = ["the cat", "every man " * 30, ""]
    masked, plain = encode_masked_batch(vocabulary, texts, 16), encode_batch(vocabulary, texts, 16)
    for name, value in plain.items():
        np.testing.assert_array_equal(masked[name], value)
