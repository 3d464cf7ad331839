"""Questions with their options filled in, in a graph.

Shapes: B questions, C options.
"""

from __future__ import annotations

import tensorflow as tf

from data_pipeline.finetuning.features import LOW_LINES

# The blank, and the characters that normalization turns into one, as in `features.fill_blank`.
_LOW_LINES = "_" + "".join(map(chr, LOW_LINES))


def filled_bytes(questions: tf.Tensor, options: tf.Tensor) -> tf.Tensor:
    """Total bytes of questions [B] with each option [B, C] filled into each blank: int64 []."""
    lengths = [tf.cast(tf.strings.length(each), tf.int64) for each in (questions, options)]
    choices = tf.shape(options, tf.int64)[1]
    lines = tf.strings.regex_replace(questions, f"[^{_LOW_LINES}]", "")
    blanks = tf.cast(tf.strings.length(lines, "UTF8_CHAR"), tf.int64)
    of_options = tf.maximum(blanks, 1)[:, None] * lengths[1]
    return tf.reduce_sum(lengths[0]) * choices + tf.reduce_sum(of_options)


def fill_blanks(questions: tf.Tensor, options: tf.Tensor) -> tf.Tensor:
    """`features.fill_blank` in a graph: string [B] and [B, C] -> [B, C].

    "She _ home.", "went" -> "She went home."; "Where?", "Here." -> "Where? Here."
    """
    questions = tf.strings.regex_replace(questions, f"[{_LOW_LINES}]", "_")
    has_blank = tf.strings.regex_full_match(questions, "(?s:.*)_(?s:.*)")
    parts = tf.strings.split(questions, sep="_")  # [B, (parts)]
    num_choices = tf.shape(options)[1]
    rows = tf.repeat(tf.range(tf.size(questions)), num_choices)  # [B * C]
    each = tf.gather(parts, rows)  # [B * C, (parts)]
    option = tf.gather(tf.reshape(options, [-1]), each.value_rowids())
    is_first = tf.ragged.range(each.row_lengths()).flat_values == 0
    pieces = tf.strings.join([tf.where(is_first, "", option), each.flat_values])
    filled = tf.strings.reduce_join(each.with_values(pieces), axis=1)
    filled = tf.reshape(filled, tf.shape(options))
    after = tf.strings.join([tf.broadcast_to(questions[:, None], tf.shape(options)), options], " ")
    return tf.where(has_blank[:, None], filled, after)
