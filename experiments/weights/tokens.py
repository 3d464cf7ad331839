"""Files of tokens, and the batches that are drawn from them, without TensorFlow."""

from __future__ import annotations

import io
import lzma

import numpy as np

from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.tokenizers.base import Tokenizer

_XZ = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 1, "pb": 1}]  # Ids are two bytes.


def packed(part: TokenizedDocuments) -> bytes:
    """The content of a file of documents: about 1.1 bytes a token of English."""
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
