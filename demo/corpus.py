"""The demonstration's corpus as a folder: train.txt, heldout.txt, sources.tsv, manifest.json.

The texts have one sentence per line and a blank line between documents; sources.tsv names all
documents in the order of the corpus, which is also their order in each text.
"""

# TensorFlow is imported where files are written or read: processes that parse docstrings need none.
from __future__ import annotations

import collections
import dataclasses
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from data_pipeline.errors import UserError

SPLITS = ("train", "heldout")
MIN_HELDOUT_SENTENCES = 3  # Shorter documents make no pairs of sentences worth an evaluation.
_HEADER = "split\tsource\tname\tsentences\n"
_NO_LETTERS = re.compile(r"[\W_]+")


@dataclasses.dataclass(frozen=True)
class CorpusDocument:
    """A document with its origin.

    Attributes:
      source: name of the package or file.
      name: name of the module, or file and number; unique in the corpus.
      sentences: sentences, none of them empty, without line breaks and tabs.
      split: "train" or "heldout".
    """

    source: str
    name: str
    sentences: list[str]
    split: str = "train"


def normalized(sentence: str) -> str:
    """A sentence without case, spaces and punctuation: "It's x_1!" -> "it s x 1"."""
    return _NO_LETTERS.sub(" ", sentence).strip().casefold()


def rank(name: str) -> str:
    """A sort key that shuffles documents, whatever else is in the corpus."""
    return hashlib.sha256(name.encode("utf-8")).hexdigest()


def hold_out(documents: Sequence[CorpusDocument], share: float) -> list[CorpusDocument]:
    """The documents with their splits: about the `share` of them, at least one, is held out.

    Raises:
      UserError: fewer than two documents are long enough.
    """
    if not 0 < share < 1:
        raise UserError(f"--heldout_share should lie between 0 and 1; received {share}.")
    names = [doc.name for doc in documents if len(doc.sentences) >= MIN_HELDOUT_SENTENCES]
    if len(names) < 2:
        raise UserError(
            f"Two documents of at least {MIN_HELDOUT_SENTENCES} sentences are needed, one of them "
            f"to hold out; the corpus has {len(names)} (a blank line ends a document)."
        )
    count = min(len(names) - 1, max(1, round(share * len(names))))
    held_out = set(sorted(names, key=rank)[:count])
    return [
        dataclasses.replace(document, split="heldout" if document.name in held_out else "train")
        for document in documents
    ]


def write(
    documents: Sequence[CorpusDocument], output_dir: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Writes the folder of a corpus, the manifest last; returns the manifest."""
    import tensorflow as tf

    from data_pipeline.files import atomic_files

    tf.io.gfile.makedirs(output_dir)
    manifest: dict[str, Any] = {"kind": "corpus", **settings}
    for split in SPLITS:
        part = [document for document in documents if document.split == split]
        text = "\n\n".join("\n".join(document.sentences) for document in part) + "\n"
        content = text.encode("utf-8")
        atomic_files.write_bytes(os.path.join(output_dir, f"{split}.txt"), content)
        manifest[split] = {"bytes": len(content), **_counts(part)}
    rows = [
        f"{document.split}\t{document.source}\t{document.name}\t{len(document.sentences)}\n"
        for document in documents
    ]
    sources = "".join([_HEADER, *rows]).encode("utf-8")
    atomic_files.write_bytes(os.path.join(output_dir, "sources.tsv"), sources)
    manifest["sources"] = _by_source(documents)
    atomic_files.write_json(os.path.join(output_dir, "manifest.json"), manifest)
    return manifest


def _counts(documents: Iterable[CorpusDocument]) -> dict[str, int]:
    lengths = [len(document.sentences) for document in documents]
    return {"documents": len(lengths), "sentences": sum(lengths)}


def _by_source(documents: Iterable[CorpusDocument]) -> dict[str, dict[str, int]]:
    """Counts of each source, the largest first."""
    groups = collections.defaultdict(list)
    for document in documents:
        groups[document.source].append(document)
    counts = {source: _counts(group) for source, group in groups.items()}
    return dict(sorted(counts.items(), key=lambda item: -item[1]["sentences"]))


def read(corpus_dir: str) -> list[CorpusDocument]:
    """The documents of a corpus folder, in order.

    Raises:
      UserError: the folder lacks a file, or its texts do not agree with sources.tsv.
    """
    import tensorflow as tf

    from data_pipeline.corpus.documents import Corpus, read_documents

    path = os.path.join(corpus_dir, "sources.tsv")
    if not tf.io.gfile.exists(path):
        raise UserError(f"{path} does not exist; make it with python -m demo.collect_docstrings.")
    with tf.io.gfile.GFile(path, "rb") as file:
        rows = [row.split("\t") for row in file.read().decode("utf-8").split("\n")[1:] if row]
    texts = {
        split: read_documents(Corpus([os.path.join(corpus_dir, f"{split}.txt")], "lines"))
        for split in SPLITS
    }
    documents = []
    for split, source, name, count in rows:
        sentences = next(texts[split], None)
        if sentences is None or len(sentences) != int(count):
            raise UserError(
                f"{split}.txt in {corpus_dir} lacks the document {name} of sources.tsv; make the "
                "corpus again with python -m demo.collect_docstrings."
            )
        documents.append(CorpusDocument(source, name, sentences, split))
    return documents
