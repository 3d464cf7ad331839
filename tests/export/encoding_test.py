"""The Python twin: layout, truncation and masks, spelled out."""

from export import encoding


def test_layout_of_a_pair():
    ids, types = encoding.pack([10, 11], [20], 16, cls_id=2, sep_id=3)
    assert ids == [2, 10, 11, 3, 20, 3]
    assert types == [0, 0, 0, 0, 1, 1]


def test_layout_of_a_single_text():
    assert encoding.pack([10, 11, 12], [], 4, cls_id=2, sep_id=3) == ([2, 10, 11, 3], [0, 0, 0, 0])


def test_tokens_are_dropped_from_the_longer_segment():
    ids, _ = encoding.pack([10, 11, 12, 13, 14], [20, 21], 8, cls_id=2, sep_id=3)
    assert ids == [2, 10, 11, 12, 3, 20, 21, 3]


def test_masks_are_read(vocabulary):
    ids = encoding.encode_with_masks(vocabulary, "the[MASK] cat[MASK].")
    assert ids.count(vocabulary.mask_id) == 2
    assert vocabulary.ids_to_pieces(ids)[-2:] == ["[MASK]", "."]
    assert [i for i in ids if i != vocabulary.mask_id] == vocabulary.encode("the cat.")


def test_batch_is_padded_to_its_longest(vocabulary):
    batch = encoding.encode_batch(vocabulary, ["the", "the cat runs"], 16)
    assert batch["input_mask"].sum(axis=1).max() == batch["input_mask"].shape[1]
    assert (batch["input_word_ids"][batch["input_mask"] == 0] == vocabulary.pad_id).all()
