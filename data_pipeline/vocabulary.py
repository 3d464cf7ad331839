"""A corpus to a SentencePiece vocabulary, made as the English ALBERTs' 30k-clean.model was."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import re
from collections.abc import Iterator, Sequence

import sentencepiece

from data_pipeline import atomic_files, documents, storage
from data_pipeline.errors import UserError
from data_pipeline.normalization import normalize
from data_pipeline.sentencepiece_tokenizer import SentencePieceTokenizer
from data_pipeline.tokenization import SETTINGS_FILE, TokenizerSettings

MANIFEST = "vocabulary.json"
CONTROL_SYMBOLS = ["[CLS]", "[SEP]", "[MASK]"]
USER_DEFINED_SYMBOLS = ["(", ")", '"', "-", ".", "–", "£", "€"]
_TRAINER_THREADS = 16  # SentencePiece's result depends on it, so it is the same on every machine.
_MAX_SENTENCE_BYTES = 1 << 20


def _texts(
    corpus: documents.Corpus,
    settings: TokenizerSettings,
    report: documents.ReadReport,
    show_progress: bool,
) -> Iterator[str]:
    for document in documents.read_documents(corpus, report, show_progress):
        for sentence in document:
            yield normalize(sentence, settings.lower, settings.rules == "huggingface")


def _explain(error: Exception, vocab_size: int, patterns: Sequence[str] | str) -> UserError:
    """SentencePiece's failures in the user's terms."""
    text = " ".join(str(error).split())
    too_high = re.search(r"Vocabulary size too high .* value <= (\d+)", text)
    too_low = re.search(r"smaller than required_chars\. \d+ vs (\d+)", text)
    if too_high:
        return UserError(
            f"--vocab_size={vocab_size} is too large for the text in {patterns}: at most "
            f"{too_high[1]} pieces can be learned from it. Lower --vocab_size or give more text."
        )
    if too_low:
        return UserError(
            f"--vocab_size={vocab_size} is too small: the characters of the text alone need "
            f"{too_low[1]}. Raise --vocab_size or lower --character_coverage."
        )
    return UserError(f"SentencePiece cannot learn a vocabulary from {patterns}: {text}")


def train_vocabulary(
    corpus_patterns: Sequence[str] | str,
    output_dir: str,
    vocab_size: int,
    lower: bool = True,
    *,
    rules: str = "google",
    input_format: str = "auto",
    input_sentence_size: int = 10_000_000,
    character_coverage: float = 0.99995,
    overwrite: bool = False,
    show_progress: bool = False,
) -> str:
    """Writes the vocabulary, its settings, vocabulary.json; returns the model's path.

    Args:
      corpus_patterns: text files, see `documents.read_documents`.
      output_dir: folder to write.
      vocab_size: V, special pieces included.
      lower: lower-case the text first.
      rules: what tokenizer_settings.json says, see TokenizerSettings.
      input_format: see `documents`.
      input_sentence_size: at most so many sentences, drawn at random, are used.
      character_coverage: share of the text's characters that get a piece.
      overwrite: replace a vocabulary in `output_dir`.
      show_progress: draw a progress bar of the reading on stderr.

    Raises:
      UserError: bad input, a vocabulary exists already, or `vocab_size` does not fit the text.
    """
    path = os.path.join(output_dir, SentencePieceTokenizer.STORED_NAME)
    if storage.exists(path) and not overwrite:
        raise UserError(f"{path} exists already; choose another folder or give --overwrite.")
    settings = TokenizerSettings(lower, rules)
    report = documents.ReadReport()
    corpus = documents.Corpus(corpus_patterns, input_format)
    files = corpus.files()
    texts = _texts(corpus, settings, report, show_progress)
    first = next(texts, None)
    if first is None:
        raise UserError(f"{corpus_patterns} holds no text to learn a vocabulary from.")
    try:
        model = _train(
            itertools.chain([first], texts),
            vocab_size=vocab_size,
            input_sentence_size=input_sentence_size,
            character_coverage=character_coverage,
        )
    except RuntimeError as error:
        raise _explain(error, vocab_size, corpus_patterns) from None
    _write(output_dir, model, settings, vocab_size, files, report)
    return path


def _train(texts: Iterator[str], **options) -> bytes:
    """A serialized unigram model with ALBERT's special pieces; same texts give the same bytes."""
    model, failures = io.BytesIO(), []
    sentencepiece.set_random_generator_seed(0)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_keep_failure(texts, failures),
            model_writer=model,
            model_type="unigram",
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            pad_piece="<pad>",
            unk_piece="<unk>",
            control_symbols=CONTROL_SYMBOLS,
            user_defined_symbols=USER_DEFINED_SYMBOLS,
            shuffle_input_sentence=True,
            max_sentence_length=_MAX_SENTENCE_BYTES,
            num_threads=_TRAINER_THREADS,
            minloglevel=1,
            **options,
        )
    finally:
        if failures:
            raise failures[0]
    return model.getvalue()


def _keep_failure(texts: Iterator[str], failures: list[Exception]) -> Iterator[str]:
    """The texts; an exception ends them and is kept, because SentencePiece would swallow it."""
    try:
        yield from texts
    except Exception as error:
        failures.append(error)


def _write(
    output_dir: str,
    model: bytes,
    settings: TokenizerSettings,
    vocab_size: int,
    files: Sequence[str],
    report: documents.ReadReport,
) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    scores = [(processor.IdToPiece(i), processor.GetScore(i)) for i in range(vocab_size)]
    storage.make_folder(output_dir)
    vocab = "".join(f"{piece}\t{score:g}\n" for piece, score in scores)
    settings.to_json(os.path.join(output_dir, SETTINGS_FILE))
    atomic_files.write_bytes(os.path.join(output_dir, "spiece.vocab"), vocab.encode("utf-8"))
    atomic_files.write_bytes(os.path.join(output_dir, SentencePieceTokenizer.STORED_NAME), model)
    manifest = {
        "kind": "albert_vocabulary",
        "vocab_size": vocab_size,
        "vocab_fingerprint": hashlib.sha256(model).hexdigest(),
        "sentencepiece_version": sentencepiece.__version__,
        "corpus_files": [os.path.basename(path) for path in files],
        "problems": dict(report.problems),
        "problem_examples": report.examples,
    }
    atomic_files.write_json(os.path.join(output_dir, MANIFEST), manifest)
