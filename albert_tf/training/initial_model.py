"""The architecture and the weights that a run starts from."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from albert_tf.checkpoints import formats
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.pretrained.loading import locate, shipped_names
from albert_tf.pretrained.presets import PRESETS, get_preset
from data_pipeline.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class InitialModel(Settings):
    """The source of a run's architecture and weights."""

    preset: str | None = setting(None, f"Architecture by name: {', '.join(PRESETS)}.")
    config_file: str | None = setting(
        None, "Architecture from an albert_config.json, instead of --preset."
    )
    init_checkpoint: str | None = setting(
        None,
        "Weights to start from: a model folder, a Hugging Face folder, the prefix of a "
        "google-research checkpoint, or the name of a published model, which is downloaded.",
    )
    recompute: bool = setting(
        False,
        "Recompute activations for the gradient instead of keeping them: less memory, more time.",
        expert=True,
    )
    repeat_positions: int = setting(
        0,
        "Length of the sequences that --init_checkpoint was trained on, to train on longer ones: "
        "later positions start as copies of those. 0: keep the positions of the checkpoint.",
        expert=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.repeat_positions and not self.init_checkpoint:
            raise UserError(
                f"--repeat_positions={self.repeat_positions} copies trained positions. Give "
                "--init_checkpoint, or leave it out."
            )

    def config(self, vocab_size: int, max_seq_length: int, data: str) -> AlbertConfig:
        """The architecture, for data of this vocabulary and length.

        A preset without weights is only an architecture: it takes over the data's vocabulary size.

        Args:
          vocab_size: V.
          max_seq_length: S.
          data: name of the data, for messages.

        Raises:
          UserError: no architecture is given, or two, or the data do not fit it.
        """
        config = self._named_config()
        if self.preset and not self.init_checkpoint and vocab_size != config.vocab_size:
            print(f"--preset={self.preset}: vocab_size {vocab_size}, from the data.")
            config = config.replace(vocab_size=vocab_size)
        check_data_fit(config, vocab_size, max_seq_length, data)
        return config.replace(recompute=config.recompute or self.recompute)

    def _named_config(self) -> AlbertConfig:
        if self.preset and self.config_file:
            raise UserError("--preset and --config_file are both given. Give one.")
        if self.config_file:
            return AlbertConfig.from_json_file(self.config_file)
        if self.preset:
            return get_preset(self.preset)
        if self.init_checkpoint:
            return locate(self.init_checkpoint).config()
        raise UserError(
            f"no architecture is given. Pass --preset ({', '.join(PRESETS)}) or --config_file."
        )

    def chosen_vocabulary(self, vocab_file: str | None) -> str:
        """Path of `vocab_file`, or else of the vocabulary next to the weights, or of the preset's
        if the package contains it.
        """
        if vocab_file:
            return vocab_file
        shipped = self.preset if self.preset in shipped_names() else None
        start = self.init_checkpoint or shipped
        if not start:
            raise UserError("--vocab_file is missing. Pass it, or --init_checkpoint.")
        source = locate(start)
        if not source.vocab_file:
            raise UserError(f"--vocab_file is missing: no vocabulary found next to {source.path}.")
        return source.vocab_file

    def load_weights(self, model: keras.Model) -> None:
        """Fills a model with its heads from `init_checkpoint`, if there is one.

        The sentence-order head is newly initialized if the weights lack it, as the published
        albert-base-v2 and others do.
        """
        if self.init_checkpoint:
            source = locate(self.init_checkpoint)
            if new := source.load(model, formats.Allowed(formats.WITHOUT_PAIRS)):
                print(f"Not in {source.path}, and new: {', '.join(new)}")
            self._repeat_positions(model)

    def load_start(self, model: keras.Model) -> None:
        """`formats.load_start` from `init_checkpoint`, if there is one."""
        if self.init_checkpoint:
            formats.load_start(model, locate(self.init_checkpoint))
            self._repeat_positions(model)

    def _repeat_positions(self, model: keras.Model) -> None:
        """Replaces position embeddings from `repeat_positions` on, unless it is 0, by copies of
        those before: 3 of 8 positions, 0 1 2 3 4 5 6 7 -> 0 1 2 0 1 2 0 1.
        """
        # Training on short sequences leaves later positions untrained. Copies at least encode which
        # tokens are near each other (Beltagy et al., Longformer, 2020).
        if not (count := self.repeat_positions):
            return
        table = model.encoder.embeddings.position_embeddings
        size = table.shape[0]
        if count > size:
            raise UserError(
                f"--repeat_positions={count} does not lie between 1 and {size}, the positions of "
                "the model. Give the length of the sequences that its weights were trained on."
            )
        table.assign(tf.gather(table, tf.range(size) % count))


def check_data_fit(config: AlbertConfig, vocab_size: int, max_seq_length: int, data: str) -> None:
    """Raises UserError if the vocabulary sizes of model and data differ, or the model has too few
    positions; `data` is the data's name.
    """
    if vocab_size != config.vocab_size:
        raise UserError(
            f"the vocabulary of {data} has {vocab_size} pieces, the model's vocab_size is "
            f"{config.vocab_size}. Use the vocabulary that the model was made with."
        )
    if max_seq_length > config.max_position_embeddings:
        raise UserError(
            f"max_seq_length {max_seq_length} is longer than the model's "
            f"{config.max_position_embeddings} positions. Use at most that many ({data})."
        )
