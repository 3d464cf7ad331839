"""The base of all tokenizers: settings that travel with a vocabulary, special pieces, ids."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import UserError
from data_pipeline.files import json_records, storage

RULES = ("google", "huggingface", "plain")


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """Settings of a tokenizer: with the vocabulary, they decide which ids a text has.

    Attributes:
      lower: lower-case the text.
      rules: rules around SentencePiece. "google": "2010," is split again, as the published models
        were trained; "huggingface": split again without the word mark that google-research leaves
        in front, and quotes written `` or '' become "; "plain": SentencePiece alone. Of a WordPiece
        vocabulary, "huggingface" says that the number of a line is the id of its piece, whatever
        the line, that of a piece that occurs twice the last counts, and that a word of more than
        100 characters, not 200, is unknown.
      strip_accents: drop accents. SentencePiece decomposes text first (NFKD), only if so. None
        becomes True for SentencePiece, `lower` for WordPiece, as in the references.
      space_chinese: set ideographs apart, as WordPiece does. None becomes True for WordPiece, False
        for SentencePiece, which has no such step.
    """

    lower: bool = True
    rules: str = "google"
    strip_accents: bool | None = None
    space_chinese: bool | None = None

    def __post_init__(self) -> None:
        if self.rules not in RULES:
            raise UserError(
                f"tokenizer rules should be one of {', '.join(RULES)}; received {self.rules!r}."
            )

    @property
    def join_quotes(self) -> bool:
        """Whether `` and '' are written as ", before SentencePiece."""
        return self.rules == "huggingface"

    @property
    def cleaning(self) -> tuple[bool, bool, bool]:
        """Resolved settings as `normalize` takes them: lower, join_quotes, strip_accents."""
        return self.lower, self.join_quotes, bool(self.strip_accents)

    def json_bytes(self, vocab_sha256: str) -> bytes:
        """Content of a tokenizer_settings.json for the vocabulary with this SHA-256."""
        values = {**dataclasses.asdict(self), "vocab_sha256": vocab_sha256}
        return (json.dumps(values, indent=2) + "\n").encode("utf-8")

    @classmethod
    def from_json(cls, path: str) -> tuple[TokenizerSettings, str | None]:
        """The settings in a tokenizer_settings.json, and the SHA-256 of their vocabulary, which
        earlier versions did not write. Missing or unknown fields, and other types, are a UserError.
        """
        stored = dataclasses.asdict(json_records.read(path, None, _Stored, "Copy it again."))
        vocab_sha256 = stored.pop("vocab_sha256")
        return cls(**stored), vocab_sha256


@dataclasses.dataclass(frozen=True)
class _Stored:
    """The content of a tokenizer_settings.json; earlier versions wrote fewer fields."""

    lower: bool
    rules: str
    strip_accents: bool | None = None
    space_chinese: bool | None = None
    vocab_sha256: str | None = None


class FlatIds(NamedTuple):
    """Ids of many sentences, one after the other: [[5, 9], [], [7]] -> [5, 9, 7], [2, 0, 1].

    Attributes:
      ids: int32 [T].
      lengths: int64 [N], number of ids of each sentence.
    """

    ids: np.ndarray
    lengths: np.ndarray


def flatten(rows: Sequence[Sequence[int]]) -> FlatIds:
    """Lists of ids as flat arrays."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = itertools.chain.from_iterable(rows)
    return FlatIds(np.fromiter(flat, np.int32, int(lengths.sum())), lengths)


class Tokenizer(abc.ABC):
    """A tokenizer in Python; its twin in TensorFlow graphs is made by `graph.graph_tokenizer`.

    Attributes:
      settings: TokenizerSettings without None.
      vocab_file: path of the vocabulary.
      fingerprint: hexadecimal SHA-256 of that file.
      pieces: V pieces by id; `vocab_size` is V.
      pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special pieces.
      is_word_start: np.bool_ [V], whether a piece starts a word.
    """

    STORED_NAME: str  # Name of the vocabulary file in a folder of data or of a model.
    SPECIAL_PIECES: tuple[str, str, str, str, str]  # Padding, unknown, [CLS], [SEP], [MASK].

    def __init__(
        self,
        vocab_file: str,
        lower: bool = True,
        rules: str = "google",
        strip_accents: bool | None = None,
        space_chinese: bool | None = None,
    ) -> None:
        """Loads a vocabulary.

        Args:
          vocab_file: path of the vocabulary.
          lower, rules, strip_accents, space_chinese: see `TokenizerSettings`.

        Raises:
          UserError: a bad file, one without a special piece, or settings that cannot be followed.
        """
        self.vocab_file = os.fspath(vocab_file)
        self.settings = self.resolve(TokenizerSettings(lower, rules, strip_accents, space_chinese))
        content = self._read()
        self.fingerprint = hashlib.sha256(content).hexdigest()
        self.pieces = self._load(content)
        self.vocab_size = len(self.pieces)
        ids = {piece: i for i, piece in enumerate(self.pieces)}
        missing = [piece for piece in self.SPECIAL_PIECES if piece not in ids]
        if missing:
            raise UserError(
                f"{self.vocab_file} has no piece {', '.join(missing)}. Train a vocabulary with "
                "python -m data_pipeline.train_vocabulary, which adds them."
            )
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            ids[piece] for piece in self.SPECIAL_PIECES
        )
        self.is_word_start = np.array([self._starts_word(piece) for piece in self.pieces])
        self._prepare()

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Sets what a kind of tokenizer derives from its pieces."""

    @classmethod
    def resolve(cls, settings: TokenizerSettings) -> TokenizerSettings:
        """Settings with this kind's own values in place of None."""
        strips = settings.lower if settings.strip_accents is None else settings.strip_accents
        spaces = bool(settings.space_chinese)
        return dataclasses.replace(settings, strip_accents=strips, space_chinese=spaces)

    @property
    def identity(self) -> tuple[str | bool | None, ...]:
        """Everything that decides ids."""
        settings = self.settings
        # Accents and ideographs are left out where they are as the other settings imply, because
        # the hashes in folders of earlier versions do not have them.
        plain = self.resolve(TokenizerSettings(settings.lower, settings.rules))
        others = (settings.strip_accents, settings.space_chinese) if settings != plain else ()
        return (self.fingerprint, settings.lower, settings.rules, *others)

    def settings_json(self) -> bytes:
        """Content of the tokenizer_settings.json to be stored with the vocabulary."""
        return self.settings.json_bytes(self.fingerprint)

    def _read(self) -> bytes:
        if storage.is_folder(self.vocab_file):
            raise UserError(f"{self.vocab_file} is a folder; give the vocabulary file in it.")
        if not storage.exists(self.vocab_file):
            raise UserError(
                f"The vocabulary {self.vocab_file} does not exist. Train one with python -m "
                "data_pipeline.train_vocabulary."
            )
        return self.content()

    def content(self) -> bytes:
        """The vocabulary file."""
        return storage.read_bytes(self.vocab_file)

    @abc.abstractmethod
    def _load(self, content: bytes) -> list[str]:
        """Loads the vocabulary from the content of its file; returns the pieces by id."""

    @abc.abstractmethod
    def _starts_word(self, piece: str) -> bool: ...

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """Ids of one string, without special pieces."""

    @abc.abstractmethod
    def encode_pieces(self, text: str) -> list[str]:
        """Pieces of one string, without special pieces."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many strings."""
        return [self.encode(text) for text in texts]

    def encode_flat(self, texts: Sequence[str]) -> FlatIds:
        """Ids of many strings as arrays."""
        return flatten(self.encode_batch(texts))

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that stand for no text."""
        return (self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id)

    def ids_to_pieces(self, ids: Sequence[int]) -> list[str]:
        """Pieces with these ids."""
        return [self.pieces[i] for i in ids]
