"""Loads a tokenizer from its vocabulary, with the settings in the files next to it."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

from data_pipeline.errors import UserError
from data_pipeline.files import sealed, storage
from data_pipeline.tokenizers import file_names, huggingface_files
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

_CAPITAL = re.compile(r"^(##)?[A-Z]")
_ADVICE = "Copy the folder of the vocabulary again."
_MODEL = "model.json"
# Files that this project writes next to a vocabulary, and a key that each of them has.
_OWN = {
    file_names.MANIFEST: "vocab_fingerprint",
    _MODEL: "task",
    "manifest.json": "vocab_fingerprint",
}


def load_tokenizer(
    vocab_file: str,
    lower: bool | None = None,
    rules: str | None = None,
    strip_accents: bool | None = None,
    space_chinese: bool | None = None,
) -> Tokenizer:
    """Loads a tokenizer with the settings in the files next to the vocabulary, if there are any.

    These are tokenizer_settings.json, or Hugging Face's (`huggingface_files`). Without them, text
    is lower-cased, unless a vocab.txt has capitals, and google's rules apply, as the published
    models need. Next to a vocab.txt, Hugging Face's files also select Hugging Face's rules.

    Args:
      vocab_file: a WordPiece vocabulary (vocab.txt) if the name ends in .txt, a SentencePiece model
        otherwise.
      lower: see TokenizerSettings, also for the arguments below; None: as the files say.
      rules: see `lower`.
      strip_accents: see `lower`.
      space_chinese: see `lower`.

    Returns:
      The tokenizer, whose `settings` have no None.

    Raises:
      UserError: the vocabulary is missing or bad, or is not the one that its settings were stored
        with; settings are not supported or contradict each other; or the settings of a vocabulary
        that this project wrote are missing.
    """
    path = os.fspath(vocab_file)
    folder = os.path.dirname(path)
    kind = WordPieceTokenizer if path.endswith(".txt") else SentencePieceTokenizer
    manifest = os.path.join(folder, file_names.MANIFEST)
    if storage.exists(manifest):
        names_there = (os.path.basename(path), file_names.SETTINGS)
        sealed.read(manifest, _ADVICE).check(folder, names_there, _ADVICE)
    names = ("lower", "rules", "strip_accents", "space_chinese")
    values = zip(names, (lower, rules, strip_accents, space_chinese))
    given = {name: value for name, value in values if value is not None}
    is_huggingface = huggingface_files.has_files(folder)
    foreign = huggingface_files.read_settings(folder, kind)
    settings_file = os.path.join(folder, file_names.SETTINGS)
    vocab_sha256: str | None = None
    beside: dict[str, Any] = {name: stated.value for name, stated in foreign.items()}
    if storage.exists(settings_file):
        stored, vocab_sha256 = TokenizerSettings.from_json(settings_file)
        beside = _stored(settings_file, kind.resolve(stored), foreign, given)
    elif lower is None and (own := _own_file(folder)):
        raise UserError(
            f"{settings_file} is missing, though written with {own}; it defines how text "
            "is read. Copy it there from where the vocabulary was made; or set "
            "--lower_case=true or false, with which google's rules apply."
        )
    elif kind is WordPieceTokenizer and is_huggingface:
        beside["rules"] = "huggingface"
    if "lower" in given and "strip_accents" not in foreign:
        _follow_lower(kind, beside)
    settings = {**beside, **given}
    tokenizer = kind(path, **settings)
    if "lower" not in settings and not is_huggingface and _is_cased(tokenizer):
        tokenizer = kind(path, **settings, lower=False)
    if vocab_sha256 not in (None, tokenizer.fingerprint):
        raise UserError(
            f"{path} is not the vocabulary that {settings_file} was written with: its "
            f"SHA-256 is {tokenizer.fingerprint}, but vocab_sha256 is {vocab_sha256}. Copy "
            "both from one place."
        )
    huggingface_files.check_tokens(folder, tokenizer)
    return tokenizer


def _is_cased(tokenizer: Tokenizer) -> bool:
    """Whether a vocab.txt was made from text with capitals."""
    # BERT's archives say this only in their names, cased_L-12_H-768_A-12. In its cased English
    # vocabulary, a third of the pieces have a capital; in the uncased ones, only special pieces.
    if not isinstance(tokenizer, WordPieceTokenizer):
        return False
    capitals = sum(bool(_CAPITAL.search(piece)) for piece in tokenizer.pieces)
    return capitals > 0.05 * len(tokenizer.pieces)


def _own_file(folder: str) -> str | None:
    """The file in a folder that shows that this project wrote the vocabulary, if there is one."""
    for name, key in _OWN.items():
        path = os.path.join(folder, name)
        if storage.exists(path) and key in sealed.read(path, _ADVICE).values:
            return path
    return None


def _stored(
    path: str,
    stored: TokenizerSettings,
    foreign: dict[str, huggingface_files.Stated],
    given: dict[str, Any],
) -> dict[str, Any]:
    """The settings of a tokenizer_settings.json, which no other source may contradict."""
    values = dataclasses.asdict(stored)
    for name, stated in foreign.items():
        if values[name] != stated.value:
            raise UserError(
                f"{path} has {name} {values[name]}, and {stated.place}: they contradict each "
                "other. Correct the one that is wrong."
            )
    is_model = storage.exists(os.path.join(os.path.dirname(path), _MODEL))
    for name, value in given.items():
        if is_model and values[name] != value:
            flag = "--lower_case" if name == "lower" else f"--{name}"
            raise UserError(
                f"{name}={str(value).lower()} ({flag}) contradicts {path}, with which the model "
                f"was trained: {str(values[name]).lower()}. Leave it out."
            )
    return values


def _follow_lower(kind: type[Tokenizer], values: dict[str, Any]) -> None:
    """Drops `strip_accents` from settings if it only follows `lower`, which has been overridden."""
    plain = TokenizerSettings(values.get("lower", True), values.get("rules", "google"))
    if values.get("strip_accents") == kind.resolve(plain).strip_accents:
        values.pop("strip_accents", None)
