"""Counts sentences of evaluation sets, and paragraphs that resemble them, in training text.

python -m experiments.weights.overlap --input='train/*' --evaluation_sets='glue/*/dev.tsv'
"""

from __future__ import annotations

import collections

from benchmarks.tables import print_rows
from data_pipeline.command_line import flags, run_binary
from experiments.weights.evaluation_sets import EvaluationSets, define_set_flag, documents

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Text")
    flags.DEFINE_string("input", None, "Text files (globs, separated by commas).", required=True)
    define_set_flag(required=True)


def main() -> None:
    sets = EvaluationSets(FLAGS.evaluation_sets)
    counts: collections.Counter = collections.Counter()
    for _, document in documents(FLAGS.input):
        for paragraph in document:
            counts.update(sets.problems(paragraph))
    print_rows(sets.rows(counts))


if __name__ == "__main__":
    define_flags()
    run_binary(main)
