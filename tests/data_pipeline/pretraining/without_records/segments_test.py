"""Pairs of segments made in a graph: with the same draws, those of segments.py."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.pretraining import tokenized
from data_pipeline.pretraining.segments import PairMaker
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.pretraining.without_records import segments
from data_pipeline.pretraining.without_records.segments import Draws
from data_pipeline.pretraining.without_records.tokens import split_long_sentences

LIMIT = 61
FIELDS = ("start_a", "length_a", "start_b", "length_b", "label")


@pytest.fixture(scope="module")
def text(documents_text, tokenizer) -> TokenizedDocuments:
    """Documents of many and few sentences, an empty one, one of a word, endless sentences."""
    documents = [document.split("\n") for document in documents_text[:120]]
    documents[3:3] = [[], ["file"], ["value " * 200, "x" * 300, "name " * 61]]
    return tokenized.tokenize(documents, tokenizer)


def in_graph(text: TokenizedDocuments) -> TokenizedDocuments:
    return TokenizedDocuments(text.ids, *map(tf.constant, (text.sentences, text.documents)),
                              tf.constant(text.starts_word))  # fmt: skip


class Recorded(Draws):
    """Keeps what was drawn."""

    def __init__(self, seed):
        super().__init__(tf.constant([seed, 5], tf.int64))
        self.drawn = {}

    def uniform(self, stream, count):
        self.drawn[stream] = super().uniform(stream, count)
        return self.drawn[stream]

    def heads(self, stream, counts):
        self.drawn[stream] = super().heads(stream, counts)
        return self.drawn[stream]


class Replayed:
    """Gives PairMaker the draws of a graph, in the order in which it asks."""

    def __init__(self, maker, drawn, objective):
        drawn = {stream: values.numpy() for stream, values in drawn.items()}
        self._maker, self._drawn = maker, drawn
        names = ("BACKWARDS", "IS_SHORT", "SHORT_TARGET", "BORDER", "LAST_FROM_A")
        self._uniform = [drawn[getattr(segments, name)] for name in names]
        if objective == "nsp":
            self._uniform[:1] = []
            is_short, short = self._uniform[:2]
            targets = np.where(is_short < 0.3, 2 + (short * (LIMIT - 1)).astype(int), LIMIT)
            self._uniform[2:2] = [self.of_document(i, targets[i]) for i in maker._with_text]
        self._heads = [drawn[segments.FRONT_A], drawn[segments.FRONT_B]]

    def of_document(self, document, target):
        """What the chunks of a document draw, in turn: the draws of their first sentences."""
        first, last = self._maker._documents[document]
        names = ("CONTINUES", "USED", "OTHER", "OTHER_START")
        streams = [self._drawn[getattr(segments, name)] for name in names]
        found, whole = [], last - first
        while first < last:
            end = self._maker._chunk_end(first, last, target)
            continues, used, other, start = (stream[first] for stream in streams)
            if continues >= 0.5:
                found.append(continues)
                first = end
            else:
                found += [continues, *([used] if end > first + 1 else []), other, start]
                first += 1 + int(used * (end - first - 1))
        return np.array(found + [np.nan] * (4 * whole - len(found)))

    def random(self, count):
        values = self._uniform.pop(0)
        assert len(values) == count
        return values

    def binomial(self, counts, probability):
        heads = self._heads.pop(0)
        assert probability == 0.5 and np.all((heads >= 0) & (heads <= counts))
        return heads


def pairs_of(text, objective, seed, short_seq_prob=0.3):
    draws = Recorded(seed)
    pairs = segments.make_pairs(in_graph(text), objective, LIMIT, short_seq_prob, draws)
    return {name: getattr(pairs, name).numpy() for name in FIELDS}, draws.drawn


@pytest.mark.parametrize("objective", ["sop", "nsp", "none"])
def test_the_same_draws_give_the_same_pairs(text, objective):
    maker = PairMaker(text, objective, LIMIT, 0.3, swap=False)
    for seed in range(3):
        found, drawn = pairs_of(text, objective, seed)
        expected, _ = maker.make(Replayed(maker, drawn, objective))
        assert len(expected) > 300
        for name in FIELDS:
            np.testing.assert_array_equal(found[name], getattr(expected, name), name)


def test_long_sentences_are_cut_at_the_same_places(text):
    expected = tokenized.split_long_sentences(text, LIMIT)
    assert expected.num_sentences > text.num_sentences + 5
    found = split_long_sentences(in_graph(text), LIMIT)
    np.testing.assert_array_equal(found.sentences, expected.sentences)
    np.testing.assert_array_equal(found.documents, expected.documents)


def test_a_document_alone_has_no_next_sentence_pairs(tokenizer):
    alone = tokenized.tokenize([["One file here.", "Another value."], []], tokenizer)
    assert not len(pairs_of(alone, "nsp", 0)[0]["label"])


def test_draws_are_uniform_and_independent_of_each_other(text):
    draws = Draws(tf.constant([1, 5], tf.int64))
    streams = np.array([draws.uniform(stream, 4000) for stream in range(12)])
    assert streams.min() >= 0 and streams.max() < 1
    np.testing.assert_allclose(streams.mean(axis=1), 0.5, atol=0.025)
    assert np.abs(np.corrcoef(streams) - np.eye(12)).max() < 0.08
    heads = draws.heads(0, tf.range(4000, dtype=tf.int64))
    assert abs(np.mean(heads / np.arange(1, 4001)) - 0.5) < 0.01


def test_shuffled_pairs_are_the_same_pairs(text):
    draws = Draws(tf.constant([1, 5], tf.int64))
    made = segments.make_pairs(in_graph(text), "sop", LIMIT, 0.3, draws)
    shuffled = segments.shuffle(made, draws)
    before, after = (
        np.stack([getattr(pairs, name) for name in FIELDS], axis=1) for pairs in (made, shuffled)
    )
    assert (before != after).any(axis=1).mean() > 0.9
    assert sorted(map(tuple, before)) == sorted(map(tuple, after))
