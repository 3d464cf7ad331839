"""Packed records hold whole sentences, in order, and hardly any padding."""

import numpy as np
import pytest

from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.packing import DocumentPacker, with_separators
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import read_label_counts
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.records import record_folder

SEP = 3


def documents(*sizes):
    """Documents with sentences of these lengths, ids 10, 11, ...; every second id starts a word."""
    lengths = [length for document in sizes for length in document]
    count = sum(lengths)
    return TokenizedDocuments(
        np.arange(10, 10 + count, dtype=np.int32),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([[0], np.cumsum([len(document) for document in sizes])]).astype(np.int64),
        np.arange(count) % 2 == 1,
    )


def test_separators_end_documents():
    found = with_separators(documents([2, 1], [], [1]), SEP)
    assert found.ids.tolist() == [10, 11, 12, SEP, 13, SEP]
    assert found.sentences.tolist() == [0, 2, 4, 6] and found.documents.tolist() == [0, 2, 2, 3]
    assert found.starts_word.tolist() == [True, True, False, True, True, True]


def texts_of(packer, pairs):
    return [packer.tokenized.ids[s : s + n].tolist() for s, n in zip(pairs.start_a, pairs.length_a)]


def test_records_hold_as_many_sentences_as_fit():
    packer = DocumentPacker(documents([4, 3], [2], [5, 1], [9]), SEP, 10, short_seq_prob=0.0)
    pairs, skipped = packer.make(np.random.default_rng(1))
    texts = texts_of(packer, pairs)
    assert not skipped and not pairs.length_b.any() and not pairs.label.any()
    assert sum(text.count(SEP) for text in texts) < 4 and max(map(len, texts)) <= 10
    assert [i for text in texts for i in text if i != SEP] == list(range(10, 34))
    assert all(text[0] != SEP and text[-1] != SEP for text in texts)
    ends = {13, 16, 18, 23, 24, 33}  # Last ids of sentences.
    assert all(text[-1] in ends for text in texts)


def test_copies_are_cut_at_other_places():
    packer = DocumentPacker(documents(*[[5] * 4] * 50), SEP, 40, short_seq_prob=0.0)
    rng = np.random.default_rng(0)
    assert len({tuple(packer.make(rng)[0].start_a[:3].tolist()) for _ in range(9)}) > 3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, few_words):
    """1,050 documents of some 60 pieces."""
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice(few_words, rng.integers(5, 12))) for _ in range(4200)]
    path = tmp_path_factory.mktemp("packing") / "a.txt"
    path.write_text("\n\n".join("\n".join(sentences[i : i + 4]) for i in range(0, 4200, 4)))
    return str(path)


@pytest.mark.parametrize("masking", ["static", "dynamic"])
def test_short_documents_fill_long_records(tmp_path, corpus, wordpiece, masking):
    shares = {}
    for packs in (False, True):
        settings = PretrainingSettings(
            max_seq_length=512, sentence_objective="none", pack_documents=packs, masking=masking,
            dupe_factor=1,
        )  # fmt: skip
        folder = str(tmp_path / str(packs))
        manifest = create_pretraining_data(Corpus(corpus, "lines"), folder, wordpiece, settings)
        shares[packs] = manifest["statistics"]["mean_length"] / 512
    assert shares[False] < 0.2 and shares[True] > 0.9
    counts = read_label_counts(record_folder.read_manifest(folder))
    assert counts[wordpiece.sep_id] == 0 and counts.sum() > 0


def test_masks_never_cover_or_cross_separators(tmp_path, corpus, wordpiece):
    """Static records and batches of dynamic ones."""
    batches = {}
    for masking in ("static", "dynamic"):
        settings = PretrainingSettings(
            max_seq_length=128, sentence_objective="none", pack_documents=True, masking=masking,
            dupe_factor=1, masked_lm_prob=0.3, mask_by_span=True,
        )  # fmt: skip
        folder = str(tmp_path / masking)
        create_pretraining_data(Corpus(corpus, "lines"), folder, wordpiece, settings)
        batches[masking] = next(iter(pretraining_dataset(folder, 200, training=False)))
    for batch in batches.values():
        batch = {name: values.numpy() for name, values in batch.items()}
        rows, places = np.nonzero(batch["masked_lm_weights"])
        positions = batch["masked_lm_positions"][rows, places]
        tokens = batch["input_word_ids"].copy()
        tokens[rows, positions] = batch["masked_lm_ids"][rows, places]
        assert not np.isin(batch["masked_lm_ids"][rows, places], wordpiece.special_ids).any()
        separators = np.count_nonzero(tokens == wordpiece.sep_id, axis=1)
        lengths = batch["input_mask"].sum(axis=1)
        assert np.median(separators) >= 2 and not batch["input_type_ids"].any()
        assert np.all(tokens[np.arange(len(tokens)), lengths - 1] == wordpiece.sep_id)
        assert abs(len(rows) / lengths.sum() - 0.3) < 0.02
        is_masked = np.zeros(tokens.shape, bool)
        is_masked[rows, positions] = True
        after = is_masked[:, 1:][(tokens[:, :-1] == wordpiece.sep_id) & (tokens[:, 1:] > 0)]
        assert 0.1 < after.mean() < 0.4, "words right after [SEP] are masked nearly as others are"
