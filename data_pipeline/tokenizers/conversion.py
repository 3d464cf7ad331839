"""A tokenizer in a folder of other software: its files there, and what they cannot say."""

from __future__ import annotations

import os

from data_pipeline.files import atomic_files
from data_pipeline.tokenizers import file_names, huggingface_files
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: str, software: str, max_length: int) -> list[str]:
    """Writes the vocabulary of a tokenizer and its settings into a folder of a format, such as
    "google" or "huggingface"; `max_length` is the number of tokens that the model takes at most.

    Gives lines for people: what that software does otherwise, and what it has to be told.
    """
    name = tokenizer.STORED_NAME
    if software == "google" and name == file_names.SENTENCEPIECE:
        name = file_names.GOOGLE_SENTENCEPIECE
    atomic_files.write_bytes(os.path.join(folder, name), tokenizer.content())
    # For all software, because this project reads the folder, too.
    path = os.path.join(folder, file_names.SETTINGS)
    atomic_files.write_bytes(path, tokenizer.settings_json())
    if software == "huggingface":
        config = huggingface_files.config_of(tokenizer, max_length)
        atomic_files.write_json(os.path.join(folder, huggingface_files.CONFIG), config)
        return _of_rules(tokenizer, "transformers", "huggingface")
    if software == "google":
        return [*_of_google(tokenizer), *_of_rules(tokenizer, "google-research/albert", "google")]
    return []


def _of_rules(tokenizer: Tokenizer, software: str, rules: str) -> list[str]:
    found = tokenizer.settings.rules
    if found == rules or not isinstance(tokenizer, SentencePieceTokenizer):
        return []
    return [
        f"{software} reads quotes and pieces such as '2010,' by its own rules ({rules}), not by "
        f"{found}: there, texts with these have other ids."
    ]


def _of_google(tokenizer: Tokenizer) -> list[str]:
    """Lines about case, for which google-research has a flag, accents and ideographs."""
    settings = tokenizer.settings
    lines = (
        [] if settings.lower else ["google-research/albert has to be told --do_lower_case=False."]
    )
    own = tokenizer.resolve(TokenizerSettings(settings.lower, settings.rules))
    for name in ("strip_accents", "space_chinese"):
        if getattr(settings, name) != getattr(own, name):
            lines.append(
                f"google-research/albert has no setting for {name}={getattr(settings, name)}: "
                "there, texts that it concerns have other ids."
            )
    return lines
