"""Folders of weights in Hugging Face's format and float16, with the vocabulary."""

from __future__ import annotations

from albert_tf import AlbertPretrainer
from albert_tf.checkpoints import huggingface
from data_pipeline.files import atomic_folders
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.conversion import write_tokenizer


def write_weights(model: AlbertPretrainer, tokenizer: Tokenizer, output_dir: str) -> None:
    """Writes a folder, replacing an existing one."""
    with atomic_folders.replacing(output_dir) as folder:
        huggingface.save(model, folder, dtype="float16")
        positions = model.config.max_position_embeddings
        for line in write_tokenizer(tokenizer, folder, "huggingface", positions):
            print(line)
    print(f"{output_dir}: {model.count_params():,} parameters")
