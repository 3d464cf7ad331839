"""Documents that occurred before are found, in little memory."""

import numpy as np

from data_pipeline.corpus import deduplication, documents
from data_pipeline.corpus.deduplication import SeenDigests, document_digests
from data_pipeline.corpus.documents import Corpus
from data_pipeline.corpus.report import ReadReport


def test_duplicates_are_the_later_ones(tmp_path):
    (tmp_path / "a.txt").write_text("One.\nTwo.\n\nThree.\n\nOne.\n  Two.\n")
    (tmp_path / "b.jsonl").write_text('{"text": "Three."}\n{"text": "One. Two."}\n{"text": "4."}\n')
    corpus = Corpus(str(tmp_path / "*"))
    seen, report, kept = SeenDigests(), ReadReport(), []
    for block in documents.read_corpus(corpus.files(), corpus, block_bytes=5):
        dropped = seen.add(document_digests(block, corpus))
        kept += documents.documents_of_block(block, corpus, report, dropped)
    assert kept == [["One.", "Two."], ["Three."], ["4."]]
    assert report.problems == {"duplicate document, dropped": 3}


def test_digests_are_remembered_beyond_the_buffer(monkeypatch):
    monkeypatch.setattr(deduplication, "_BUFFER", 10)
    seen = SeenDigests()
    numbers = np.random.default_rng(0).integers(0, 1 << 63, 500).tolist()
    for start in range(0, 500, 7):
        assert seen.add(numbers[start : start + 7]) == []
    assert seen.add([1, numbers[0], 1, numbers[499]]) == [1, 2, 3]


def test_digests_are_kept_once_and_copied_seldom(monkeypatch):
    """Sorting all of them again for each full buffer would take hours for a terabyte."""
    monkeypatch.setattr(deduplication, "_BUFFER", 10)
    copied, concatenate = [], np.concatenate
    monkeypatch.setattr(
        deduplication.np, "concatenate", lambda parts: copied.append(1) or concatenate(parts)
    )
    seen = SeenDigests()
    sizes = []
    for start in range(0, 1000, 10):
        assert len(seen.add([*range(start, start + 10), *range(start)])) == start
        sizes.append(sum(map(len, seen._sorted)))
    assert sizes[-1] == 1000, "duplicates take no memory"
    assert len(copied) <= 100 and len(seen._sorted) < 8
