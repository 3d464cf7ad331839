"""Initial weights for pre-training with word statistics and heads that attend to neighbors."""

from albert_tf.starting_weights.informed import set_informed_weights
from albert_tf.starting_weights.word_statistics import WordStatistics, count_words

__all__ = ["WordStatistics", "count_words", "set_informed_weights"]
