"""The formats of corpus files (`input_format`), and how a file's format is found.

  lines          one sentence per line, a blank line between documents (google-research's format).
  paragraphs     one paragraph per line, a blank line between documents.
  jsonl          one JSON object per line is one document; its field "text" holds paragraphs, which
                 are separated by blank lines or, unless they look like lines wrapped at a fixed
                 width, by line breaks.
  parquet        the same for the rows of a Parquet file and their column "text".
  wikiextractor  <doc ...>, the title, paragraphs, </doc>, as WikiExtractor writes them; the title
                 is left out. (Its --json output is jsonl.)
  auto           the format that `detect_format` finds, for each file.
In all formats but lines, paragraphs are split into sentences. A document never runs across files.
Hard-wrapped plain text should be unwrapped first (or given as jsonl): in lines and paragraphs each
of its lines counts as a sentence or paragraph.
"""

from __future__ import annotations

import itertools
import re

from data_pipeline.corpus.parts import MAX_LINE_BYTES
from data_pipeline.corpus.reader import Reader
from data_pipeline.corpus.streams import compression
from data_pipeline.errors import UserError

INPUT_FORMATS = ("auto", "lines", "paragraphs", "jsonl", "parquet", "wikiextractor")
_SAMPLE_LINES = 1000
# A sentence's end with more behind it; Chinese and Japanese leave no space between the two.
_SENTENCE_END_INSIDE = re.compile(
    r"""[.!?。！？]["'”’)\]]*\s+[^\W\d_a-z]|[。！？]["'”’」』）)\]]*[^\s"'”’」』）)\]。！？]"""
)


def detect_format(path: str, text_field: str = "text") -> str:
    """The format that "auto" stands for, found in the beginning of a file.

    parquet for a Parquet file; jsonl for *.jsonl and *.json, compressed or not; wikiextractor when
    the text starts with "<doc "; otherwise paragraphs when more than half of the first 1,000 lines
    with text hold the end of a sentence inside, else lines.
    """
    with Reader(path, text_field) as reader:
        if reader.is_parquet:
            return "parquet"
        if path.removesuffix(compression(path)).endswith((".jsonl", ".json")):
            return "jsonl"
        lines = iter(lambda: reader.read_line(MAX_LINE_BYTES), b"")
        sample = list(itertools.islice(filter(bytes.strip, lines), _SAMPLE_LINES))
    if sample and sample[0].lstrip().startswith(b"<doc "):
        return "wikiextractor"
    inside = sum(
        bool(_SENTENCE_END_INSIDE.search(line.decode("utf-8", errors="replace"))) for line in sample
    )
    return "paragraphs" if inside * 2 > len(sample) else "lines"


def check_format(reader: Reader, input_format: str) -> None:
    """Raises UserError for Parquet or JSON read as another format, or another file as Parquet."""
    is_json = reader.path.removesuffix(compression(reader.path)).endswith((".jsonl", ".json"))
    if is_json and input_format not in ("jsonl", "parquet"):
        raise UserError(
            f"{reader.path} is JSON by its name, but --input_format={input_format} is given; leave "
            "it at auto, or give the file another name."
        )
    if reader.is_parquet != (input_format == "parquet"):
        found = "is a" if reader.is_parquet else "is no"
        raise UserError(
            f"{reader.path} {found} Parquet file, but --input_format={input_format} is given; "
            "leave it at auto."
        )
