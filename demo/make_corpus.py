"""Writes the demonstration's text, train.txt and heldout.txt: one sentence per line, a blank line
between documents.

The text is the Python language reference, which ships with every Python for `help("if")`: English
about one subject, identical for the same version of Python. Or it is your own text.

    python -m demo.make_corpus --output_dir=demo_out/corpus
    python -m demo.make_corpus --output_dir=demo_out/corpus --corpus='my_text/*.txt'
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pydoc_data.topics import topics

import tensorflow as tf

from data_pipeline.command_line import flags, run_binary
from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.corpus.sentences import split_sentences
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files

FLAGS = flags.FLAGS

HELDOUT_SHARE = 0.1
MIN_SENTENCES = 3  # Shorter documents yield no sentence pairs.

# Markup on the reference's pages -> its replacement.
MARKUP = (
    (r"^(\* |\d+\. |Note: |Warning: |CPython implementation detail: )", ""),
    (r'"([^"]*)"', r"\1"),  # A literal.
    (r"\*{1,2}([^\s*][^*]*)\*{1,2}", r"\1"),  # Emphasis.
    (r"\s*\[\d+\]", ""),  # A footnote.
)
_SENTENCE = re.compile(r"(?:[A-Z]|__).*[.!?]\)?")
MIN_WORDS, LETTERS = 5, 0.85  # Minimum words, and minimum share of letters and spaces.


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string("output_dir", None, "Folder to write the text to.", required=True)
    flags.DEFINE_string(
        "corpus",
        None,
        "Your own text instead of the language reference: files in any format of docs/data.md.",
    )


def main() -> None:
    """Writes both files, then prints their sizes."""
    documents = own_documents(FLAGS.corpus) if FLAGS.corpus else reference_documents(topics)
    parts = hold_out(documents)
    tf.io.gfile.makedirs(FLAGS.output_dir)
    for split, part in zip(("train", "heldout"), parts):
        text = "\n\n".join("\n".join(sentences) for sentences in part) + "\n"
        path = os.path.join(FLAGS.output_dir, f"{split}.txt")
        atomic_files.write_bytes(path, text.encode("utf-8"))
        count = sum(map(len, part))
        print(f"{path}: {count:,} sentences in {len(part):,} documents, {len(text) / 1e6:.2f} MB")


def reference_documents(pages: Mapping[str, str]) -> dict[str, list[str]]:
    """The sentences of the reference's pages by name, without repetitions of other pages."""
    documents: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name in sorted(pages):
        documents[name] = [each for each in prose(pages[name]) if each not in seen]
        seen.update(documents[name])
    return {name: list(dict.fromkeys(each)) for name, each in documents.items() if each}


def prose(page: str) -> list[str]:
    """The sentences of a page of the reference without markup; skips code and tables.

    'The "if" statement is *compound* [1].' -> ["The if statement is compound."]
    """
    sentences = []
    for paragraph in re.split(r"\n\s*\n", page):
        if "|  " in paragraph or "::=" in paragraph:  # A table or a grammar rule.
            continue
        text = " ".join(paragraph.split())
        for markup, plain in MARKUP:
            text = re.sub(markup, plain, text)
        sentences += [each for each in split_sentences(text) if _is_prose(each)]
    return sentences


def _is_prose(sentence: str) -> bool:
    letters = sum(character.isalpha() or character == " " for character in sentence)
    long_enough = len(sentence.split()) >= MIN_WORDS and letters >= LETTERS * len(sentence)
    return long_enough and _SENTENCE.fullmatch(sentence) is not None


def own_documents(patterns: str) -> dict[str, list[str]]:
    """All sentences of the user's own files by document name, which is file and number. Raises
    UserError if there is no such file, or no text in it.
    """
    documents = {
        f"{path}:{number}": [" ".join(sentence.split()) for sentence in document]
        for path in Corpus(patterns).files()
        for number, document in enumerate(read_documents(Corpus([path])))
    }
    if not documents:
        raise UserError(f"There is no text in {patterns}; give files with text.")
    return documents


def hold_out(documents: Mapping[str, list[str]]) -> tuple[list[list[str]], list[list[str]]]:
    """The training documents and the held-out documents, which have at most a tenth of the
    sentences; a hash of the name selects them. UserError if fewer than two are long enough.
    """
    names = [name for name, sentences in documents.items() if len(sentences) >= MIN_SENTENCES]
    if len(names) < 2:
        raise UserError(
            f"Two documents of at least {MIN_SENTENCES} sentences are needed, one of them to hold "
            f"out; the text has {len(names)} (a blank line ends a document)."
        )
    room = HELDOUT_SHARE * sum(map(len, documents.values()))
    chosen = set()
    for name in sorted(names, key=lambda name: hashlib.sha256(name.encode("utf-8")).hexdigest()):
        if len(documents[name]) <= room:
            room -= len(documents[name])
            chosen.add(name)
    chosen = chosen or {min(names, key=lambda name: len(documents[name]))}
    return (
        [sentences for name, sentences in documents.items() if name not in chosen],
        [sentences for name, sentences in documents.items() if name in chosen],
    )


if __name__ == "__main__":
    define_flags()
    run_binary(main)
