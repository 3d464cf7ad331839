"""Trains a SentencePiece vocabulary in the same way as the English ALBERTs' 30k-clean.model."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator

import sentencepiece

from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.normalization import normalize
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer

# As in the command for spm_train in the README of google-research/albert.
CONTROL_SYMBOLS = ["[CLS]", "[SEP]", "[MASK]"]
USER_DEFINED_SYMBOLS = ["(", ")", '"', "-", ".", "–", "£", "€"]
_TRAINER_THREADS = 16  # Fixed on all machines, since SentencePiece's result depends on it.
_MAX_SENTENCE_BYTES = 1 << 20  # Longer sentences are skipped; the default limit is 4192.


def learn_files(
    sentences: Iterable[str],
    settings: TokenizerSettings,
    vocab_size: int,
    character_coverage: float,
    input_sentence_size: int,
) -> dict[str, bytes]:
    """Returns the content of spiece.model, and of spiece.vocab with its pieces as text, by file
    name. UserError if `vocab_size` does not fit the text.
    """
    cleaning = SentencePieceTokenizer.resolve(settings).cleaning
    try:
        model = _train(
            (normalize(sentence, *cleaning) for sentence in sentences),
            vocab_size=vocab_size,
            input_sentence_size=input_sentence_size,
            character_coverage=character_coverage,
        )
    except RuntimeError as error:
        raise _explain(error, vocab_size) from None
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    scores = [(processor.IdToPiece(i), processor.GetScore(i)) for i in range(vocab_size)]
    vocab = "".join(f"{piece}\t{score:g}\n" for piece, score in scores)
    return {"spiece.vocab": vocab.encode("utf-8"), SentencePieceTokenizer.STORED_NAME: model}


def _train(texts: Iterator[str], **options: float) -> bytes:
    """A serialized unigram model with ALBERT's special pieces; equal texts give equal bytes."""
    model = io.BytesIO()
    failures: list[Exception] = []
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
    """Yields the texts; stores an exception, which SentencePiece would swallow, and stops."""
    try:
        yield from texts
    except Exception as error:
        failures.append(error)


def _explain(error: Exception, vocab_size: int) -> UserError:
    """Converts a failure of SentencePiece's trainer to a UserError that says what to change."""
    text = " ".join(str(error).split())
    too_high = re.search(r"Vocabulary size too high .* value <= (\d+)", text)
    too_low = re.search(r"smaller than required_chars\. \d+ vs (\d+)", text)
    if too_high:
        return UserError(
            f"--vocab_size={vocab_size} is too large for the text: at most {too_high[1]} pieces "
            "can be learned from it. Lower --vocab_size or give more text."
        )
    if too_low:
        return UserError(
            f"--vocab_size={vocab_size} is too small: the characters of the text alone need "
            f"{too_low[1]}. Raise --vocab_size or lower --character_coverage."
        )
    reason = re.sub(r"^(\w+: )?\S+\(\d+\) (\[.*?\])?\s*", "", text).rstrip(". ")
    return UserError(
        f"SentencePiece cannot learn --vocab_size={vocab_size} pieces from the text"
        f"{f': {reason}' if reason else ''}. Give more text, or another --vocab_size or "
        "--input_sentence_size."
    )
