"""Merges files in SQuAD's format into one training file, with the first answer of each question.

python -m experiments.weights.merge_squad --input='squadshifts_*.json' --output=train.json
"""

from __future__ import annotations

import json
from pathlib import Path

from data_pipeline.command_line import flags, run_binary
from data_pipeline.corpus.blocks import match_files
from data_pipeline.files import atomic_files

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string("input", None, "Files (globs, separated by commas).", required=True)
    flags.DEFINE_string("output", None, "File to write.", required=True)


def main() -> None:
    files = match_files(FLAGS.input)
    articles = [
        article
        for path in files
        for article in json.loads(Path(path).read_text(encoding="utf-8"))["data"]
    ]
    questions = 0
    for paragraph in (each for article in articles for each in article["paragraphs"]):
        for question in paragraph["qas"]:
            # Training uses one answer; only evaluation uses all human answers.
            question["answers"] = question["answers"][:1]
            questions += 1
    atomic_files.write_json(FLAGS.output, {"version": "1.1", "data": articles}, indent=None)
    print(f"{FLAGS.output}: {questions:,} questions of {len(files)} files")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
