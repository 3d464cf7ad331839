"""A corpus becomes complete, balanced, reproducible records; or nothing, with a reason."""

import collections
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining import masking
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import features, record_folder
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.data_pipeline.conftest import records_of

ROOT = Path(__file__).parents[3]


def read(folder):
    manifest = record_folder.read_manifest(str(folder))
    schema = features.schema_of(manifest)
    serialized = list(records_of(folder))
    columns = {name: v.numpy() for name, v in features.parse(schema, tf.stack(serialized)).items()}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


@pytest.fixture(scope="module")
def rows(records_dir):
    return read(records_dir)


def test_manifest_counts_what_was_written(records_dir, rows, tokenizer, documents_text):
    manifest = record_folder.read_manifest(records_dir)
    statistics, corpus = manifest["statistics"], manifest["corpus"]
    assert manifest["num_records"] == len(rows) == sum(f["num_records"] for f in manifest["files"])
    assert manifest["vocab_fingerprint"] == tokenizer.fingerprint
    assert (manifest["vocab_size"], manifest["max_predictions"]) == (2500, 10)
    assert corpus["documents"] == len(documents_text)
    assert statistics["tokens"] == sum(row["input_mask"].sum() for row in rows)
    assert statistics["predictions"] == sum(row["masked_lm_weights"].sum() for row in rows)
    labels = collections.Counter(
        int(i) for row in rows for i, w in zip(row["masked_lm_ids"], row["masked_lm_weights"]) if w
    )
    [(top_id, count)] = labels.most_common(1)
    assert statistics["unigram"]["accuracy"] == count / sum(labels.values())
    assert statistics["unigram"]["top_piece"] == tokenizer.pieces[top_id]
    copied = load_tokenizer(str(Path(records_dir) / "spiece.model"))
    assert copied.fingerprint == tokenizer.fingerprint and copied.settings == tokenizer.settings


def test_records_are_well_formed(rows, tokenizer):
    special = set(tokenizer.special_ids)
    for row in rows:
        length, count = int(row["input_mask"].sum()), int(row["masked_lm_weights"].sum())
        tokens = row["input_ids"].copy()
        tokens[row["masked_lm_positions"][:count]] = row["masked_lm_ids"][:count]
        assert np.all(row["input_mask"] == (np.arange(64) < length)) and not tokens[length:].any()
        separators = np.flatnonzero(tokens == tokenizer.sep_id)
        assert tokens[0] == tokenizer.cls_id
        assert len(separators) == 2 and separators[1] == length - 1
        assert np.all(row["segment_ids"][:length] == (np.arange(length) > separators[0]))
        assert not special - {tokenizer.unk_id} & set(row["masked_lm_ids"][:count].tolist())
        assert count <= masking.prediction_budgets(np.array([length]), 0.15, 10)[0]


def test_sentence_order_never_mixes_documents(tmp_path, tokenizer, create):
    """Each document repeats a word of its own: a record that mixes two would hold both."""
    words = ["file", "string", "module", "object", "value", "name", "type", "error"]
    text = "\n\n".join("\n".join([f"{word} " * n for n in (9, 1, 30, 80, 4)]) for word in words)
    (tmp_path / "a.txt").write_text(text + "\n\n" + "\n\n".join(words))
    create(tmp_path / "a.txt", tmp_path / "data", tokenizer, dupe_factor=5, max_seq_length=32)
    ids = {tokenizer.encode(word)[0] for word in words}
    for row in read(tmp_path / "data"):
        tokens = row["input_ids"].copy()
        count = int(row["masked_lm_weights"].sum())
        tokens[row["masked_lm_positions"][:count]] = row["masked_lm_ids"][:count]
        assert len(ids.intersection(tokens.tolist())) == 1
    manifest = record_folder.read_manifest(str(tmp_path / "data"))
    assert manifest["statistics"]["skipped"]["document without a pair"] == len(words)


@pytest.mark.parametrize(
    "masking, objective, expected",
    [
        ("static", "sop", "ff2e8ae303722bb7"),
        ("static", "nsp", "0cea7260c9070734"),
        ("static", "none", "db0259bd84cc0247"),
        ("dynamic", "sop", "ab459692b274e72a"),
        ("dynamic", "nsp", "3fa6e37630f1b2e3"),
        ("dynamic", "none", "e400c69b5c0c8e42"),
    ],
)
def test_records_are_the_bytes_that_they_always_were(
    tmp_path, wordpiece, masking, objective, expected
):
    """Recorded before masks became dynamic by default: explicit settings mean what they meant."""
    lines = Path(wordpiece.vocab_file).with_name("lines.jsonl").read_text(encoding="utf-8")
    texts = [" ".join(json.loads(line)["text"].split()) for line in lines.split("\n") if line]
    texts = [text for text in texts if text]
    documents = ["\n".join(texts[i : i + 12]) for i in range(0, len(texts), 12)]
    (tmp_path / "a.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    settings = PretrainingSettings(
        max_seq_length=32, max_predictions_per_seq=5, ngram=3, dupe_factor=2, masking=masking,
        sentence_objective=objective, seed=7,
    )  # fmt: skip
    corpus = Corpus(str(tmp_path / "a.txt"), "lines")
    files = create_pretraining_data(corpus, str(tmp_path / "out"), wordpiece, settings)["files"]
    digest = hashlib.sha256("".join(entry["sha256"] for entry in files).encode("ascii"))
    assert digest.hexdigest()[:16] == expected


@pytest.mark.parametrize("masking", [pytest.param("static", marks=pytest.mark.table), "dynamic"])
def test_any_number_of_processes_gives_the_same_bytes(
    tmp_path, corpus_file, tokenizer, masking, contents, create
):
    options = dict(masking=masking, dupe_factor=2, deduplicate=True)
    create(corpus_file, tmp_path / "1", tokenizer, **options)
    expected = contents(tmp_path / "1")
    assert len(expected) > 10
    for count in (2, 3):
        create(corpus_file, tmp_path / str(count), tokenizer, num_processes=count, **options)
        assert contents(tmp_path / str(count)) == expected


def test_next_sentences_need_another_document(tmp_path, tokenizer, create):
    (tmp_path / "one.txt").write_text("One document.\nOf two sentences.\n")
    with pytest.raises(UserError, match="no other document beside it"):
        create(tmp_path / "one.txt", tmp_path / "x", tokenizer, sentence_objective="nsp")


@pytest.mark.parametrize("content", [b"", b"\n\n\n", b"word\n\nword\n", b"\0\0\n"])
def test_nothing_usable_leaves_nothing(tmp_path, tokenizer, content, create):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(UserError, match=r"No record could be made of 1 file.*a.txt"):
        create(tmp_path / "a.txt", tmp_path / "data", tokenizer)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_problems_of_the_input_are_in_the_manifest(tmp_path, tokenizer, create):
    (tmp_path / "a.txt").write_bytes(b"A file here.\nAnother \xff value.\nAnd a name.\n")
    corpus = create(tmp_path / "a.txt", tmp_path / "data", tokenizer)["corpus"]
    assert corpus["problem_examples"][0].endswith("a.txt:2: invalid UTF-8, replaced by U+FFFD")


def test_duplicates_are_dropped_on_request(tmp_path, small_file, tokenizer, create):
    (tmp_path / "b.txt").write_bytes(Path(small_file).read_bytes() + b"\n\nA new text here.\n")
    both = f"{small_file},{tmp_path}/b.txt"
    single = create(small_file, tmp_path / "one", tokenizer)["corpus"]["documents"]
    for deduplicate, count in ((False, 2 * single + 1), (True, single + 1)):
        folder = tmp_path / str(deduplicate)
        corpus = create(both, folder, tokenizer, deduplicate=deduplicate)["corpus"]
        assert corpus["documents"] == count
    assert corpus["problems"]["duplicate document, dropped"] == single
