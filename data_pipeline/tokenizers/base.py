"""The base class of tokenizers, and the settings that are stored with a vocabulary."""

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
    """Settings of a tokenizer: together with the vocabulary, they determine the ids of a text.

    Attributes:
      lower: lower-case the text.
      rules: rules around SentencePiece. "google": "2010," is split again, as in training of the
        published models; "huggingface": split again without the word mark that google-research
        leaves in front, and quotes written `` or '' become "; "plain": SentencePiece alone. For a
        WordPiece vocabulary, "huggingface" means that every line number is the id of its piece,
        that the last line counts if a piece occurs twice, and that a word of more than 100
        characters, not 200, is unknown.
      strip_accents: drop accents. Only then, SentencePiece text is decomposed first (NFKD). None
        becomes True for SentencePiece, `lower` for WordPiece, as in the references.
      space_chinese: put spaces around ideographs, a step of WordPiece only. None becomes True for
        WordPiece, False for SentencePiece.
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
        """Resolved settings as arguments of `normalize`: lower, join_quotes, strip_accents."""
        return self.lower, self.join_quotes, bool(self.strip_accents)

    def json_bytes(self, vocab_sha256: str) -> bytes:
        """Content of a tokenizer_settings.json for the vocabulary with this SHA-256."""
        values = {**dataclasses.asdict(self), "vocab_sha256": vocab_sha256}
        return (json.dumps(values, indent=2) + "\n").encode("utf-8")

    @classmethod
    def from_json(cls, path: str) -> tuple[TokenizerSettings, str | None]:
        """Reads a tokenizer_settings.json: the settings and the SHA-256 of their vocabulary (None
        in files of earlier versions). Missing or unknown fields and wrong types are a UserError.
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
    """A tokenizer in Python; `graph.graph_tokenizer` makes its equivalent in TensorFlow graphs.

    Attributes:
      settings: TokenizerSettings in which None has been resolved.
      vocab_file: path of the vocabulary.
      fingerprint: hexadecimal SHA-256 of that file.
      pieces: V pieces by id; `vocab_size` is V.
      pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special pieces; `special_ids` are all.
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
          UserError: a bad file, a missing special piece, or settings that are not supported.
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
        self.special_ids = tuple(ids[piece] for piece in self.SPECIAL_PIECES)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.special_ids
        self.is_word_start = np.array([self._starts_word(piece) for piece in self.pieces])
        self._prepare()

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Sets attributes that a kind of tokenizer derives from its pieces."""

    @classmethod
    def resolve(cls, settings: TokenizerSettings) -> TokenizerSettings:
        """Replaces None in settings by the defaults of this kind of tokenizer."""
        strips = settings.lower if settings.strip_accents is None else settings.strip_accents
        spaces = bool(settings.space_chinese)
        return dataclasses.replace(settings, strip_accents=strips, space_chinese=spaces)

    @property
    def identity(self) -> tuple[str | bool | None, ...]:
        """Everything that determines the ids."""
        settings = self.settings
        # strip_accents and space_chinese are left out if they have the values that the other
        # settings imply, because hashes in folders of earlier versions do not include them.
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
        """The content of the vocabulary file."""
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

    def ids_to_pieces(self, ids: Sequence[int]) -> list[str]:
        """Pieces with these ids."""
        return [self.pieces[i] for i in ids]
