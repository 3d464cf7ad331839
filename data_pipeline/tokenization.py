"""Text to SentencePiece ids: a Python face for data preparation and a graph face for serving.

Both faces follow google-research/albert's `encode_pieces`: SentencePiece on normalised text, after
which a piece such as "2010," (a digit before a final comma) is split again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import string
from collections.abc import Sequence

import numpy as np
import sentencepiece
import tensorflow as tf

from data_pipeline import atomic_files
from data_pipeline.errors import UserError
from data_pipeline.normalization import normalize, normalize_graph

WORD_MARK = "\u2581"
DIGIT_COMMA_RULES = ("google", "off")
SETTINGS_FILE = "tokenizer.json"
SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
# google-research/albert's list has no ', = and >.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~£€')
_WORD_CHARACTERS = _PUNCTUATION | frozenset(string.ascii_letters)


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """What must be known beside a vocabulary to turn text into the same ids again.

    Attributes:
      lower: lower-case the text.
      digit_comma: "google" splits "2010," again as the reference does; "off": plain SentencePiece.
    """

    lower: bool = True
    digit_comma: str = "google"

    def __post_init__(self):
        if self.digit_comma not in DIGIT_COMMA_RULES:
            raise UserError(
                f"digit_comma should be one of {', '.join(DIGIT_COMMA_RULES)}; received "
                f"{self.digit_comma!r}."
            )

    def json_bytes(self) -> bytes:
        """Content of a tokenizer.json."""
        return (json.dumps(dataclasses.asdict(self), indent=2) + "\n").encode("utf-8")

    def to_json(self, path: str) -> None:
        """Writes the settings as JSON, atomically."""
        atomic_files.write_bytes(path, self.json_bytes())

    @classmethod
    def from_json(cls, path: str) -> TokenizerSettings:
        """Reads what `to_json` wrote; raises UserError for unknown or missing fields."""
        values = atomic_files.read_json(path)
        fields = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(values, dict) or set(values) != fields:
            raise UserError(f"{path} should hold exactly the fields {sorted(fields)}: {values!r}.")
        return cls(**values)


def is_word_start_piece(piece: str) -> bool:
    """google-research/albert's test for a piece that starts a word.

    A piece starts a word when it begins with the word mark or "<", when it is one listed
    punctuation character, or when any character is neither an ASCII letter nor listed punctuation.
    So digits, apostrophes and non-Latin pieces are words of their own.
    """
    if piece.startswith((WORD_MARK, "<")) or piece in _PUNCTUATION:
        return True
    return not _WORD_CHARACTERS.issuperset(piece)


def _read_model(model_file: str) -> bytes:
    if tf.io.gfile.isdir(model_file):
        raise UserError(f"{model_file} is a folder; give the SentencePiece model file in it.")
    if not tf.io.gfile.exists(model_file):
        raise UserError(
            f"The SentencePiece model {model_file} does not exist. Train one with python -m "
            "data_pipeline.train_vocabulary."
        )
    with tf.io.gfile.GFile(model_file, "rb") as file:
        return file.read()


def _load_processor(model_file: str, content: bytes) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        loaded = bool(content) and processor.LoadFromSerializedProto(content)
    except RuntimeError:
        loaded = False
    if not loaded:
        raise UserError(
            f"{model_file} is not a SentencePiece model (a file such as spiece.model or "
            "30k-clean.model; the .vocab file beside it will not do)."
        )
    return processor


class SentencePieceTokenizer:
    """Python face of the tokenizer.

    Attributes:
      pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special pieces.
      is_word_start: np.bool_ [V], see `is_word_start_piece`.
      fingerprint: hexadecimal SHA-256 of the model file.
    """

    def __init__(self, model_file: str, lower: bool = True, digit_comma: str = "google"):
        """Loads a model; raises UserError when the file is none or lacks a special piece."""
        self.settings = TokenizerSettings(lower=lower, digit_comma=digit_comma)
        self.model_file = os.fspath(model_file)
        content = _read_model(self.model_file)
        self.fingerprint = hashlib.sha256(content).hexdigest()
        self._processor = _load_processor(self.model_file, content)
        self.vocab_size = self._processor.GetPieceSize()
        self.pieces = [self._processor.IdToPiece(i) for i in range(self.vocab_size)]
        ids = {piece: i for i, piece in enumerate(self.pieces)}
        missing = [piece for piece in SPECIAL_PIECES if piece not in ids]
        if missing:
            raise UserError(
                f"{self.model_file} has no piece {', '.join(missing)}. Train a vocabulary with "
                "python -m data_pipeline.train_vocabulary, which adds them."
            )
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            ids[piece] for piece in SPECIAL_PIECES
        )
        self.is_word_start = np.array([is_word_start_piece(piece) for piece in self.pieces])
        self.resplit = self._resplit_table() if digit_comma == "google" else {}
        self._resplit_ids = frozenset(self.resplit)

    @property
    def lower(self) -> bool:
        """Whether text is lower-cased."""
        return self.settings.lower

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that stand for no text."""
        return (self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id)

    def _resplit_table(self) -> dict[int, list[int]]:
        """Ids that replace each piece of the vocabulary that the digit-comma rule splits again."""
        comma = self._processor.PieceToId(",")
        return {
            i: [*self._processor.EncodeAsIds(legacy_without_comma(piece)), comma]
            for i, piece in enumerate(self.pieces)
            if legacy_is_digit_comma(piece)
        }

    def encode(self, text: str) -> list[int]:
        """Ids of one string, without special pieces."""
        return self._split_again(self._processor.EncodeAsIds(normalize(text, self.lower)))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many strings; faster than one by one."""
        normalized = [normalize(text, self.lower) for text in texts]
        return [self._split_again(ids) for ids in self._processor.encode(normalized, num_threads=1)]

    def _split_again(self, ids: list[int]) -> list[int]:
        if self._resplit_ids.isdisjoint(ids):
            return ids
        return [new for i in ids for new in self.resplit.get(i, (i,))]

    def encode_pieces(self, text: str) -> list[str]:
        """Pieces of one string; text outside the vocabulary is kept as it is written."""
        pieces = []
        for piece in self._processor.EncodeAsPieces(normalize(text, self.lower)):
            if self._processor.PieceToId(piece) in self._resplit_ids:
                pieces.extend(self._processor.EncodeAsPieces(legacy_without_comma(piece)))
                piece = ","
            pieces.append(piece)
        return pieces

    def ids_to_pieces(self, ids: Sequence[int]) -> list[str]:
        """Pieces of the vocabulary by id."""
        return [self.pieces[i] for i in ids]


def legacy_is_digit_comma(piece: str) -> bool:
    """Whether google-research/albert's `encode_pieces` splits this piece again."""
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def legacy_without_comma(piece: str) -> str:
    """What google-research/albert encodes again; the new word mark in front stays.

    The reference means to remove that mark, but compares a string with bytes (issue 249); the
    published models were trained with the mark.
    """
    return piece[:-1].replace(WORD_MARK, "")


def load_tokenizer(
    model_file: str, lower: bool | None = None, digit_comma: str | None = None
) -> SentencePieceTokenizer:
    """A tokenizer with the settings of the tokenizer.json beside the model, when there is one.

    Args:
      model_file: SentencePiece model.
      lower, digit_comma: not None overrides tokenizer.json; without either, lower-casing and
        google's digit-comma rule, as the published models need.
    """
    path = os.path.join(os.path.dirname(os.fspath(model_file)), SETTINGS_FILE)
    settings = TokenizerSettings()
    if tf.io.gfile.exists(path):
        settings = TokenizerSettings.from_json(path)
    return SentencePieceTokenizer(
        model_file,
        settings.lower if lower is None else lower,
        settings.digit_comma if digit_comma is None else digit_comma,
    )


def _lasting_processor(model: bytes, fingerprint: str):
    """TF Text's tokenizer with a resource that lives as long as the process.

    TF Text's own resource belongs to an op kernel, and tf.random.set_seed clears the kernels: every
    later call fails with "Resource ... does not exist". A shared name keeps it.
    """
    from tensorflow_text.python.ops import sentencepiece_tokenizer as tf_text

    class SharedModel(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf_text.gen_sentencepiece_tokenizer.sentencepiece_op(
                model=model, shared_name=f"sentencepiece_{fingerprint}"
            )

    processor = tf_text.SentencepieceTokenizer(model=model, out_type=tf.int32)
    processor._model_resource = SharedModel()
    return processor


class GraphTokenizer(tf.Module):
    """Graph face of the tokenizer, for text-in SavedModels; needs tensorflow_text.

    Keep it as an attribute of the module that is saved: it tracks SentencePiece's resource and the
    vocabulary file as an asset.
    """

    def __init__(self, model_file: str, lower: bool = True, digit_comma: str = "google"):
        """Arguments and errors as for `SentencePieceTokenizer`."""
        super().__init__(name="tokenizer")
        python_face = SentencePieceTokenizer(model_file, lower, digit_comma)
        self.settings = python_face.settings
        self.vocab_size = python_face.vocab_size
        self.fingerprint = python_face.fingerprint
        self.vocabulary = tf.saved_model.Asset(python_face.model_file)
        self._processor = _lasting_processor(_read_model(python_face.model_file), self.fingerprint)
        self._resplits = bool(python_face.resplit)
        new_ids = [python_face.resplit.get(i, [i]) for i in range(self.vocab_size)]
        self._new_ids = np.concatenate(new_ids).astype(np.int32)
        self._new_id_splits = np.cumsum([0] + [len(ids) for ids in new_ids]).astype(np.int64)

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of strings [B] as an int32 RaggedTensor [B, (tokens)], without special pieces."""
        ids = self._processor.tokenize(normalize_graph(text, self.settings.lower))
        if not self._resplits:
            return ids
        table = tf.RaggedTensor.from_row_splits(self._new_ids, self._new_id_splits, validate=False)
        new_ids = tf.gather(table, ids.values)  # [tokens of all rows, (new ids)]
        row_splits = tf.gather(new_ids.row_splits, ids.row_splits)  # [B + 1]
        return tf.RaggedTensor.from_row_splits(new_ids.values, row_splits, validate=False)
