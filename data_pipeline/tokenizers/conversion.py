"""Writes a tokenizer for other software, and reports what the files there cannot express."""

from __future__ import annotations

import hashlib
import io
import os

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from data_pipeline.files import atomic_files, storage
from data_pipeline.tokenizers import file_names, huggingface_files
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: str, software: str, max_length: int) -> list[str]:
    """Writes the vocabulary and settings of a tokenizer into a folder in the format of `software`,
    such as "google" or "kerashub"; `max_length` is the model's maximum number of tokens.

    Returns lines for the user: how that software differs, and which options it needs.
    """
    if software == "kerashub":
        return _write_kerashub(tokenizer, os.path.join(folder, file_names.KERASHUB_SENTENCEPIECE))
    name = tokenizer.STORED_NAME
    if software == "google" and name == file_names.SENTENCEPIECE:
        name = file_names.GOOGLE_SENTENCEPIECE
    atomic_files.write_bytes(os.path.join(folder, name), tokenizer.content())
    # Written for all software, because this project also reads the folder.
    path = os.path.join(folder, file_names.SETTINGS)
    atomic_files.write_bytes(path, tokenizer.settings_json())
    if software == "huggingface":
        config = huggingface_files.config_of(tokenizer, max_length)
        atomic_files.write_json(os.path.join(folder, huggingface_files.CONFIG), config)
        return _of_rules(tokenizer, "transformers", "huggingface")
    if software == "google":
        return [*_of_google(tokenizer), *_of_rules(tokenizer, "google-research/albert", "google")]
    return []


def _write_kerashub(tokenizer: Tokenizer, path: str) -> list[str]:
    """Writes a SentencePiece model whose own rules lower-case text, since KerasHub does not."""
    content, settings = tokenizer.content(), tokenizer.settings
    if settings.lower:
        content = with_lower_case(content)
    storage.make_folder(os.path.dirname(path))
    atomic_files.write_bytes(path, content)
    stored = settings.json_bytes(hashlib.sha256(content).hexdigest())
    atomic_files.write_bytes(os.path.join(os.path.dirname(path), file_names.SETTINGS), stored)
    lines = _of_rules(tokenizer, "KerasHub", "plain")
    if settings.strip_accents:
        lines.append("KerasHub keeps accents, which this tokenizer drops: texts with accents have "
                     "other ids there.")  # fmt: skip
    return lines


def with_lower_case(content: bytes) -> bytes:
    """The SentencePiece model with nmt_nfkc_cf as its normalization: NFKC and case folding."""
    rules = io.BytesIO()
    # SentencePiece compiles its rules during training; the text does not matter.
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e f"] * 9), model_writer=rules, vocab_size=20,
        hard_vocab_limit=False, normalization_rule_name="nmt_nfkc_cf", minloglevel=2,
    )  # fmt: skip
    parse = sentencepiece_model_pb2.ModelProto.FromString
    model, folding = parse(content), parse(rules.getvalue()).normalizer_spec
    model.normalizer_spec.name = folding.name
    model.normalizer_spec.precompiled_charsmap = folding.precompiled_charsmap
    return model.SerializeToString(deterministic=True)


def _of_rules(tokenizer: Tokenizer, software: str, rules: str) -> list[str]:
    found = tokenizer.settings.rules
    if found == rules or not isinstance(tokenizer, SentencePieceTokenizer):
        return []
    return [
        f"{software} reads quotes and pieces such as '2010,' by its own rules ({rules}), not by "
        f"{found}: texts with these have other ids there."
    ]


def _of_google(tokenizer: Tokenizer) -> list[str]:
    """Lines about case, accents and ideographs; google-research has a flag only for case."""
    settings = tokenizer.settings
    lines = [] if settings.lower else ["google-research/albert needs --do_lower_case=False."]
    own = tokenizer.resolve(TokenizerSettings(settings.lower, settings.rules))
    for name in ("strip_accents", "space_chinese"):
        if getattr(settings, name) != getattr(own, name):
            lines.append(
                f"google-research/albert has no setting for {name}={getattr(settings, name)}: "
                "texts that it affects have other ids there."
            )
    return lines
