"""Trains a vocabulary from a corpus: SentencePiece for most languages, WordPiece for Chinese."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sentencepiece

from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.corpus.report import ReadReport
from data_pipeline.errors import UserError, warn_once
from data_pipeline.files import atomic_files, lock, sealed, storage
from data_pipeline.tokenizers import file_names, sentencepiece_vocabulary, wordpiece_vocabulary
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

TOKENIZERS = ("sentencepiece", "wordpiece")
_VOCABULARIES = (file_names.SENTENCEPIECE, file_names.WORDPIECE)
_LOWER_CASE = TokenizerSettings()  # As the published models.


@lock.locks("output_dir")
def train_vocabulary(
    corpus: Corpus | Sequence[str] | str,
    output_dir: str,
    vocab_size: int,
    *,
    settings: TokenizerSettings = _LOWER_CASE,
    tokenizer: str = "sentencepiece",
    input_sentence_size: int = 10_000_000,
    character_coverage: float = 0.99995,
    overwrite: bool = False,
    show_progress: bool = False,
) -> str:
    """Writes a vocabulary, its settings and vocabulary.json.

    Args:
      corpus: text files, or a Corpus, which also says how to read them. Duplicates are not dropped.
      output_dir: folder to write.
      vocab_size: V, special pieces included.
      settings: how the text is normalized, here and by all tokenizers with this vocabulary.
      tokenizer: one of TOKENIZERS.
      input_sentence_size: largest number of sentences that SentencePiece uses, drawn at random;
        WordPiece counts the words of all sentences.
      character_coverage: share of the text's characters that get a piece, 0 to 1.
      overwrite: replace a vocabulary in `output_dir`.
      show_progress: show a progress bar on stderr while reading.

    Returns:
      Path of the vocabulary, spiece.model or vocab.txt.

    Raises:
      UserError: bad input, a vocabulary exists already, or `vocab_size` does not fit the text.
    """
    corpus = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
    kind = WordPieceTokenizer if tokenizer == "wordpiece" else SentencePieceTokenizer
    if kind is WordPieceTokenizer and settings.rules != TokenizerSettings.rules:
        raise UserError(
            f"--rules={settings.rules} works only with --tokenizer=sentencepiece; leave it out."
        )
    settings = kind.resolve(settings)
    existing = [
        name
        for name in (*_VOCABULARIES, file_names.SETTINGS)
        if storage.exists(os.path.join(output_dir, name))
    ]
    if existing and not overwrite:
        found = os.path.join(output_dir, existing[0])
        raise UserError(f"{found} exists already; choose another folder or give --overwrite.")

    report = ReadReport()
    sentences = _sentences(corpus, report, show_progress)
    if kind is WordPieceTokenizer:
        words = wordpiece_vocabulary.word_counts(sentences, settings)
        pieces = wordpiece_vocabulary.learn_pieces(words, vocab_size, character_coverage)
        files = {kind.STORED_NAME: "".join(f"{piece}\n" for piece in pieces).encode("utf-8")}
    else:
        files = sentencepiece_vocabulary.learn_files(
            sentences, settings, vocab_size, character_coverage, input_sentence_size
        )
    # Problems are complete only here: the corpus is read while the vocabulary is learned.
    for example in report.examples:
        warn_once(example)
    fingerprint = hashlib.sha256(files[kind.STORED_NAME]).hexdigest()
    manifest = {
        "kind": "albert_vocabulary",
        "tokenizer": tokenizer,
        "vocab_size": vocab_size,
        "vocab_fingerprint": fingerprint,
        "sentencepiece_version": sentencepiece.__version__,
        "corpus_files": [os.path.basename(path) for path in corpus.files()],
        "problems": dict(report.problems),
        "problem_examples": report.examples,
    }
    # The settings come first: a vocabulary without them would be read with the default settings.
    files = {file_names.SETTINGS: settings.json_bytes(fingerprint), **files}
    _write(output_dir, files, manifest, replaced=existing)
    return os.path.join(output_dir, kind.STORED_NAME)


def _sentences(corpus: Corpus, report: ReadReport, show_progress: bool) -> Iterator[str]:
    """The sentences of a corpus; raises UserError if there are none."""
    sentences = itertools.chain.from_iterable(read_documents(corpus, report, show_progress))
    first = next(sentences, None)
    if first is None:
        problems = "; ".join(report.examples[:3] or report.problems)
        raise UserError(
            f"{corpus.patterns} holds no text to learn a vocabulary from"
            f"{': ' if problems else ''}{problems}."
        )
    return itertools.chain([first], sentences)


def _write(
    folder: str, files: Mapping[str, bytes], manifest: dict[str, Any], replaced: Sequence[str]
) -> None:
    """Writes the files, the settings first, and the manifest with their hashes.

    A vocabulary of the other kind is removed, since its settings are replaced.
    """
    storage.make_folder(folder)
    for name in replaced:
        if name in _VOCABULARIES and name not in files:
            storage.remove(os.path.join(folder, name))
    if file_names.SENTENCEPIECE in replaced and file_names.SENTENCEPIECE not in files:
        storage.remove(os.path.join(folder, "spiece.vocab"))  # The pieces as text.
    for name, content in files.items():
        atomic_files.write_bytes(os.path.join(folder, name), content)
    sealed_manifest = sealed.seal(manifest, sealed.hashes_of(folder, list(files)))
    atomic_files.write_json(os.path.join(folder, file_names.MANIFEST), sealed_manifest)
