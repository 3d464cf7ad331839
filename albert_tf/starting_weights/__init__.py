"""Weights to start pre-training from that know the words' statistics and can look at neighbors."""

from albert_tf.starting_weights.informed import set_informed_weights
from albert_tf.starting_weights.word_statistics import WordStatistics, count_words

__all__ = ["WordStatistics", "count_words", "set_informed_weights"]
