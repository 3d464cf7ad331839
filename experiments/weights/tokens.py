"""Files of tokens, and the batches drawn from them, without TensorFlow."""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator

import numpy as np

from data_pipeline.pretraining.columns import ColumnMaker
from data_pipeline.pretraining.segments import PairMaker
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.tokenizers.base import Tokenizer

_XZ = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 1, "pb": 1}]  # Ids are two bytes.


def packed(part: TokenizedDocuments) -> bytes:
    """The content of a file of documents: about 1.1 bytes per token of English."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        ids=part.ids.astype(np.uint16),
        sentences=np.diff(part.sentences).astype(np.uint32),
        documents=np.diff(part.documents).astype(np.uint32),
    )
    return lzma.compress(buffer.getvalue(), filters=_XZ)


def unpacked(content: bytes, tokenizer: Tokenizer) -> TokenizedDocuments:
    """The documents of `packed`."""
    with np.load(io.BytesIO(lzma.decompress(content))) as part:
        ids = part["ids"].astype(np.int32)
        sentences, documents = (
            np.append(0, np.cumsum(part[name], dtype=np.int64))
            for name in ("sentences", "documents")
        )
    return TokenizedDocuments(ids, sentences, documents, tokenizer.is_word_start[ids])


def batches(
    part: TokenizedDocuments,
    settings: PretrainingSettings,
    tokenizer: Tokenizer,
    batch_size: int,
    seed: tuple[int, ...],
) -> Iterator[dict[str, np.ndarray]]:
    """Masked batches of all documents of a part, as inputs of a compiled update by name. The seed
    determines pairs, their order and masks. An incomplete last batch is left out.
    """
    rng = np.random.default_rng(seed)
    length, objective = settings.max_num_tokens, settings.sentence_objective
    maker = PairMaker(part, objective, length, settings.short_seq_prob)
    pairs, _ = maker.make(rng)
    pairs = pairs.take(rng.permutation(len(pairs)))
    columns = ColumnMaker(settings, tokenizer)
    for first in range(0, len(pairs) - batch_size + 1, batch_size):
        some = pairs.take(slice(first, first + batch_size))
        masked = columns.masked(maker.tokenized, some, rng)
        yield {
            "input_word_ids": masked["input_ids"],
            "input_mask": masked["input_mask"],
            "input_type_ids": masked["segment_ids"],
            "masked_lm_positions": masked["masked_lm_positions"],
            "masked_lm_ids": masked["masked_lm_ids"],
            "masked_lm_weights": masked["masked_lm_weights"],
            "sentence_order_labels": masked["next_sentence_labels"][:, 0],
            "example_weights": np.ones(batch_size, bool),
        }
