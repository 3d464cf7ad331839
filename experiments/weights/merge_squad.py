"""Merges files in SQuAD's format into one training file, with the first answer of each question.

python -m experiments.weights.merge_squad --input='squadshifts_*.json' --output=train.json
"""

from __future__ import annotations

import json
from pathlib import Path

from data_pipeline.command_line import flags, run_binary
from data_pipeline.corpus.blocks import match_files
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string("input", None, "Files (globs, separated by commas).", required=True)
    flags.DEFINE_string("output", None, "File to write.", required=True)


def main() -> None:
    files = match_files(FLAGS.input)
    articles: list[dict] = []
    questions = 0
    for path in files:
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))["data"]
            for question in (q for a in found for p in a["paragraphs"] for q in p["qas"]):
                # Training uses one answer; only evaluation uses all human answers.
                question["answers"] = question["answers"][:1]
                questions += 1
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is not in SQuAD's format: {error!r}.") from None
        articles += found
    atomic_files.write_json(FLAGS.output, {"version": "1.1", "data": articles}, indent=None)
    print(f"{FLAGS.output}: {questions:,} questions of {len(files)} files")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
