"""Blanks in a graph are those of Python."""

import tensorflow as tf

from data_pipeline.finetuning.features import fill_blank
from export.graphs.choices import fill_blanks, filled_bytes

QUESTIONS = ["She _ home.", "Where?", "_\uff3f and ﹏", "a\n_ b", ""]
OPTIONS = [["went", "x_y"], ["Here.", ""], ["a", "é"], ["\\1", "中"], ["the cat", "dog"]]


def test_blanks_are_filled_as_in_python():
    found = fill_blanks(tf.constant(QUESTIONS), tf.constant(OPTIONS)).numpy()
    expected = [
        [fill_blank(q, each).encode() for each in row] for q, row in zip(QUESTIONS, OPTIONS)
    ]
    assert found.tolist() == expected


def test_bytes_are_at_least_those_of_what_is_filled():
    """They are counted before anything is filled in, to refuse what would not fit."""
    filled = sum(map(len, fill_blanks(tf.constant(QUESTIONS), tf.constant(OPTIONS)).numpy().flat))
    counted = int(filled_bytes(tf.constant(QUESTIONS), tf.constant(OPTIONS)))
    assert filled <= counted + len(OPTIONS) * len(OPTIONS[0]) <= 2 * filled
