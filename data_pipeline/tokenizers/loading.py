"""Loading of a tokenizer of either kind by the path of its vocabulary."""

from __future__ import annotations

import os

from data_pipeline.errors import UserError
from data_pipeline.files import sealed, storage
from data_pipeline.tokenizers import file_names
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

_ADVICE = "Copy the folder of the vocabulary again."


def load_tokenizer(
    vocab_file: str, lower: bool | None = None, rules: str | None = None
) -> Tokenizer:
    """A tokenizer with the settings in the file beside the vocabulary, if there is one.

    Args:
      vocab_file: a WordPiece vocabulary (vocab.txt) if the name ends in .txt, a SentencePiece model
        otherwise.
      lower, rules: as in TokenizerSettings; None: as that file says, and without a file
        lower-casing and google's rules, as the published models need.

    Raises:
      UserError: the vocabulary is missing, bad or not what train_vocabulary wrote there, or `rules`
        are "plain" for WordPiece.
    """
    folder, name = os.path.split(os.fspath(vocab_file))
    manifest = os.path.join(folder, file_names.MANIFEST)
    if storage.exists(manifest):
        found = sealed.read(manifest, _ADVICE)
        found.check(folder, (name, file_names.SETTINGS), _ADVICE)
    path = os.path.join(folder, file_names.SETTINGS)
    settings = TokenizerSettings()
    if storage.exists(path):
        settings = TokenizerSettings.from_json(path)
    lower = settings.lower if lower is None else lower
    rules = settings.rules if rules is None else rules
    if not os.fspath(vocab_file).endswith(".txt"):
        return SentencePieceTokenizer(vocab_file, lower, rules)
    if rules == "plain":
        raise UserError(
            f"rules {rules!r} are for SentencePiece models, and {vocab_file} is a WordPiece "
            f"vocabulary. Leave them at {TokenizerSettings.rules!r}."
        )
    return WordPieceTokenizer(vocab_file, lower, rules)
