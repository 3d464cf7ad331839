"""A corpus to a vocabulary: SentencePiece for most languages, WordPiece for Chinese."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Sequence

import sentencepiece

from data_pipeline.corpus import documents
from data_pipeline.corpus.report import ReadReport
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files, lock, sealed, storage
from data_pipeline.tokenizers import file_names, sentencepiece_vocabulary, wordpiece_vocabulary
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

TOKENIZERS = ("sentencepiece", "wordpiece")


@lock.locks("output_dir")
def train_vocabulary(
    corpus_patterns: Sequence[str] | str,
    output_dir: str,
    vocab_size: int,
    lower: bool = True,
    *,
    rules: str = "google",
    tokenizer: str = "sentencepiece",
    input_format: str = "auto",
    text_field: str = "text",
    language: str = "en",
    input_sentence_size: int = 10_000_000,
    character_coverage: float = 0.99995,
    overwrite: bool = False,
    show_progress: bool = False,
) -> str:
    """Writes a vocabulary, its settings and vocabulary.json.

    Args:
      corpus_patterns: text files, see `documents.read_documents`.
      output_dir: folder to write.
      vocab_size: V, special pieces included.
      lower: lower-case the text first.
      rules: rules around SentencePiece, see `TokenizerSettings`.
      tokenizer: one of TOKENIZERS.
      input_format, text_field, language: how the text is read, see `documents.Corpus`.
      input_sentence_size: largest number of sentences that SentencePiece uses, drawn at random;
        WordPiece counts the words of all.
      character_coverage: share of the text's characters that get a piece, 0 to 1.
      overwrite: replace a vocabulary in `output_dir`.
      show_progress: draw a progress bar of the reading on stderr.

    Returns:
      Path of the vocabulary, spiece.model or vocab.txt.

    Raises:
      UserError: bad input, a vocabulary exists already, or `vocab_size` does not fit the text.
    """
    is_wordpiece = tokenizer == "wordpiece"
    kind = WordPieceTokenizer if is_wordpiece else SentencePieceTokenizer
    name = kind.STORED_NAME
    path = os.path.join(output_dir, name)
    names = (file_names.SENTENCEPIECE, file_names.WORDPIECE, file_names.SETTINGS)
    existing = [each for each in names if storage.exists(os.path.join(output_dir, each))]
    if existing and not overwrite:
        found = os.path.join(output_dir, existing[0])
        raise UserError(f"{found} exists already; choose another folder or give --overwrite.")
    if is_wordpiece and rules != TokenizerSettings.rules:
        raise UserError(f"--rules={rules} goes with --tokenizer=sentencepiece only; leave it out.")
    settings = TokenizerSettings(lower, rules)
    report = ReadReport()
    corpus = documents.Corpus(corpus_patterns, input_format, text_field, language)
    read = documents.read_documents(corpus, report, show_progress)
    sentences = itertools.chain.from_iterable(read)
    first = next(sentences, None)
    if first is None:
        raise UserError(f"{corpus_patterns} holds no text to learn a vocabulary from.")
    sentences = itertools.chain([first], sentences)
    if is_wordpiece:
        words = wordpiece_vocabulary.word_counts(sentences, lower)
        pieces = wordpiece_vocabulary.learn_pieces(words, vocab_size, character_coverage)
        files = {name: "".join(f"{piece}\n" for piece in pieces).encode("utf-8")}
    else:
        files = sentencepiece_vocabulary.learn_files(
            sentences, settings, vocab_size, character_coverage, input_sentence_size
        )
    manifest = {
        "kind": "albert_vocabulary",
        "tokenizer": tokenizer,
        "vocab_size": vocab_size,
        "vocab_fingerprint": hashlib.sha256(files[name]).hexdigest(),
        "sentencepiece_version": sentencepiece.__version__,
        "corpus_files": [os.path.basename(path) for path in corpus.files()],
        "problems": dict(report.problems),
        "problem_examples": report.examples,
    }
    storage.make_folder(output_dir)
    for other in (file_names.SENTENCEPIECE, file_names.WORDPIECE):
        if other in existing and other != name:  # Its settings are replaced.
            storage.remove(os.path.join(output_dir, other))
    stored = kind.resolve(settings).json_bytes(manifest["vocab_fingerprint"])
    atomic_files.write_bytes(os.path.join(output_dir, file_names.SETTINGS), stored)
    for file, content in files.items():
        atomic_files.write_bytes(os.path.join(output_dir, file), content)
    hashes = sealed.hashes_of(output_dir, [*files, file_names.SETTINGS])
    atomic_files.write_json(
        os.path.join(output_dir, file_names.MANIFEST), sealed.seal(manifest, hashes)
    )
    return path
