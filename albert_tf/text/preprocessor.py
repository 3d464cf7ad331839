"""A Keras layer from text to a model's inputs, for `Dataset.map` and functional models.

It needs tensorflow_text, and runs on a CPU: on a TPU put it in the input pipeline.
"""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.models.inputs import lists_to_tensors
from albert_tf.pretrained.loading import preset_vocabulary
from data_pipeline.files import atomic_files
from data_pipeline.finetuning.features import check_length
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.text_graph import TextEncoder

# TensorFlow's in-memory file system: a tokenizer is made from a path, but a layer from a `.keras`
# file brings the vocabulary itself.
_MEMORY = "ram://albert_tf_vocabularies"


@keras.utils.register_keras_serializable("albert_tf")
class AlbertPreprocessor(keras.layers.Layer):
    """A layer from texts to the inputs of AlbertEncoder and of the models with it.

        preprocessor = AlbertPreprocessor.from_preset("albert-base-v2", max_seq_length=128)
        dataset = dataset.map(lambda row: (preprocessor(row["text"]), row["label"]))

    Input: strings (UTF-8) [B], [B, 1], or one string []; for pairs two such tensors, (A, B), where
    an empty B means no second text.
    Output, a dict: `input_word_ids`, `input_mask` and `input_type_ids`, int32 [B, S], or [S] for
    one string. The ids equal those of fine-tuning from files; the longer text of a pair is cut.
    """

    def __init__(
        self,
        vocab_file: str,
        max_seq_length: int = 128,
        *,
        lower: bool | None = None,
        rules: str | None = None,
        strip_accents: bool | None = None,
        space_chinese: bool | None = None,
        pad_to_longest: bool = False,
        name: str = "preprocessor",
        **kwargs: Any,
    ) -> None:
        """
        Args:
          vocab_file: a SentencePiece model, or a WordPiece vocabulary if the name ends in .txt.
          max_seq_length: S, special pieces included; longer texts are cut.
          lower, rules, strip_accents, space_chinese: see `load_tokenizer`.
          pad_to_longest: S is the length of the batch's longest row, at most `max_seq_length`.
          name: of the layer.
          kwargs: of keras.layers.Layer.

        Raises:
          UserError: the vocabulary is missing or bad, or `max_seq_length` is below 5.
        """
        super().__init__(name=name, trainable=False, autocast=False, **kwargs)
        check_length(max_seq_length)
        self.max_seq_length = max_seq_length
        self.pad_to_longest = pad_to_longest
        self._tokenizer = load_tokenizer(vocab_file, lower, rules, strip_accents, space_chinese)
        graph = graph_tokenizer(self._tokenizer)
        self._encoder = TextEncoder(graph, self._tokenizer, max_seq_length)
        with tf.init_scope():
            # TF Text creates its resource at the first call. Made here, the resource outlives the
            # temporary graph in which Keras first traces a layer.
            self._encoder.tokenize(tf.constant([""]))

    @classmethod
    def from_preset(
        cls, name_or_path: str, max_seq_length: int = 128, **arguments: Any
    ) -> AlbertPreprocessor:
        """The layer with the vocabulary that is stored next to some weights.

        Args:
          name_or_path: name of a published model, or the path of a folder or checkpoint.
          max_seq_length: S.
          arguments: further arguments of the constructor.

        Raises:
          UserError: see `preset_vocabulary`.
        """
        return cls(preset_vocabulary(name_or_path), max_seq_length, **arguments)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer in Python, which has the pieces and their ids."""
        return self._tokenizer

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Keras would treat lists of texts as structures of scalars.
        pair = _as_pair(inputs)
        texts = lists_to_tensors(inputs) if pair is None else tuple(map(lists_to_tensors, pair))
        if isinstance(texts, (str, bytes, np.ndarray)):
            texts = tf.convert_to_tensor(texts)
        return super().__call__(texts, *args, **kwargs)

    def call(self, inputs: Any) -> dict[str, tf.Tensor]:
        """The inputs of a model, see the class."""
        return self._encode(inputs)

    @tf.autograph.experimental.do_not_convert  # TF Text's code takes seconds to convert.
    def _encode(self, inputs: Any) -> dict[str, tf.Tensor]:
        texts = [_strings(text) for text in (_as_pair(inputs) or (inputs,))]
        encoded = self._encoder(*(tf.reshape(text, [-1]) for text in texts))
        if not self.pad_to_longest:
            encoded = self._pad(encoded, texts[0].shape.num_elements())
        if texts[0].shape.rank == 0:
            return {name: values[0] for name, values in encoded.items()}
        return encoded

    def _pad(self, encoded: dict[str, tf.Tensor], num_rows: int | None) -> dict[str, tf.Tensor]:
        """int32 [B, L] -> [B, S]; num_rows: B, where it is known."""
        padded = {}
        for name, values in encoded.items():
            filler = self._encoder.pad_id if name == "input_word_ids" else 0
            missing = self.max_seq_length - tf.shape(values)[1]
            values = tf.pad(values, [[0, 0], [0, missing]], constant_values=filler)
            padded[name] = tf.ensure_shape(values, [num_rows, self.max_seq_length])
        return padded

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor, with the vocabulary itself in place of its path."""
        # This way a saved model loads where the file does not exist.
        content = base64.b64encode(self._tokenizer.content()).decode("ascii")
        return {
            "name": self.name,
            "dtype": self.dtype,
            "max_seq_length": self.max_seq_length,
            "pad_to_longest": self.pad_to_longest,
            **dataclasses.asdict(self._tokenizer.settings),
            "vocabulary": {"name": self._tokenizer.STORED_NAME, "base64": content},
            "fingerprint": self._tokenizer.fingerprint,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> AlbertPreprocessor:
        """The layer from what `get_config` returned, without the original vocabulary file."""
        arguments = dict(config)
        vocabulary, fingerprint = arguments.pop("vocabulary"), arguments.pop("fingerprint")
        # Named by hash, so that layers with the same vocabulary share one file.
        folder = f"{_MEMORY}/{fingerprint}"
        path = f"{folder}/{vocabulary['name']}"
        if not tf.io.gfile.exists(path):
            tf.io.gfile.makedirs(folder)
            atomic_files.write_bytes(path, base64.b64decode(vocabulary["base64"]))
        return cls(path, **arguments)


def _as_pair(inputs: Any) -> tuple[Any, Any] | None:
    """The texts A and B of pairs; None for a single tensor of texts. Two strings in a list are a
    batch of two texts; a tuple is always a pair.
    """
    if not isinstance(inputs, (list, tuple)):
        return None
    if len(inputs) == 2 and (
        isinstance(inputs, tuple) or not any(isinstance(text, (str, bytes)) for text in inputs)
    ):
        return inputs[0], inputs[1]
    if isinstance(inputs, list) and all(isinstance(text, (str, bytes)) for text in inputs):
        return None
    raise ValueError(
        f"Expected a tensor of strings, or a pair of them; received {len(inputs)} inputs. Join "
        "the texts into one or two first."
    )


def _strings(text: Any) -> tf.Tensor:
    """A tensor of strings [] or [B], checked."""
    text = tf.convert_to_tensor(text)
    if text.dtype != tf.string or text.shape.rank not in (0, 1, 2):
        raise ValueError(
            "Expected a tensor of strings with the shape [], [batch] or [batch, 1]; received "
            f"{text.dtype.name} with the shape {text.shape}."
        )
    if text.shape.rank == 2 and text.shape[1] != 1:
        raise ValueError(
            f"Expected one text per row, [batch, 1]; received strings with the shape {text.shape}. "
            "Give pairs as a tuple of two tensors."
        )
    return text
