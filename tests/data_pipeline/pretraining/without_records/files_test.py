"""Batches straight from text files: the data of an epoch, in an order that steps resume."""

import collections
import gzip
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.without_records import files
from data_pipeline.pretraining.without_records.files import TrainingText

SETTINGS = PretrainingSettings(max_seq_length=32, dupe_factor=1, masking="dynamic")
BATCH = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory, documents_text):
    """Twelve files, three of them compressed."""
    folder = tmp_path_factory.mktemp("text")
    for number in range(12):
        text = "\n\n".join(documents_text[number * 8 : number * 8 + 8]).encode("utf-8")
        if number % 4:
            (folder / f"{number:02d}.txt").write_bytes(text)
        else:
            (folder / f"{number:02d}.txt.gz").write_bytes(gzip.compress(text))
    return folder


@pytest.fixture(scope="module")
def text(folder, tokenizer):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", 6000)  # Many groups of files.
        patch.setattr(files, "SHUFFLE_WINDOW", 100)
        yield TrainingText(Corpus(f"{folder}/*.txt,{folder}/*.gz", "lines"), tokenizer, SETTINGS)


def originals(batch):
    """What each row was before it was masked, but for the order of its segments."""
    tokens = batch["input_word_ids"].copy()
    rows, places = np.nonzero(batch["masked_lm_weights"])
    tokens[rows, batch["masked_lm_positions"][rows, places]] = batch["masked_lm_ids"][rows, places]
    return [np.sort(row).tobytes() for row in tokens]


@pytest.fixture(scope="module")
def two_epochs(text):
    """Two epochs and four batches more, as arrays."""
    steps = 2 * text.count(1 << 40) // BATCH + 4
    return list(text.batches(BATCH, seed=3).take(steps).as_numpy_iterator())


def test_an_epoch_has_every_example_once_and_epochs_differ(text, two_epochs):
    assert all((batch["example_weights"] == 1).all() for batch in two_epochs)
    rows = [row for batch in two_epochs for row in originals(batch)]
    size = (len(two_epochs) - 4) * BATCH // 2
    first, second = rows[:size], rows[size : 2 * size]
    assert size > 400
    assert sum((collections.Counter(first) - collections.Counter(second)).values()) < BATCH
    assert first != second, "in another order"
    masked = [batch["masked_lm_positions"].tobytes() for batch in two_epochs]
    assert len(set(masked)) == len(masked)


def test_a_step_of_any_epoch_can_be_found_again(text, two_epochs):
    """Here by the last of three hosts, which has its rows of the batch."""
    step = len(two_epochs) - 2
    context = tf.distribute.InputContext(3, 2)
    found = text.batches(BATCH, seed=3, start_step=step, input_context=context).take(2)
    for number, batch in enumerate(found.as_numpy_iterator()):
        for name, values in batch.items():
            expected = two_epochs[step + number][name][10:]
            np.testing.assert_array_equal(values, expected, err_msg=name)


def test_the_manifest_names_the_text(text, folder, tokenizer, tmp_path):
    manifest = text.manifest()
    assert manifest["vocab_fingerprint"] == tokenizer.fingerprint
    assert Path(manifest["directory"]) / manifest["vocab_file"] == Path(tokenizer.vocab_file)
    assert len(manifest["files"]) == 12 and manifest["num_records"] is None
    changed = tmp_path / "00.txt"
    changed.write_bytes((folder / "01.txt").read_bytes().replace(b"e", b"a", 1))
    other = TrainingText(Corpus(str(changed)), tokenizer, SETTINGS).manifest()["files"]
    assert other[0]["sha256"] not in [file["sha256"] for file in manifest["files"]]
    assert other[0]["bytes"] in [file["bytes"] for file in manifest["files"]]


def test_text_that_gives_no_example(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_text("word\n\n\nword\n")
    with pytest.raises(UserError, match=r"No example could be made of 1 file.*a.txt"):
        TrainingText(Corpus(str(tmp_path / "a.txt")), tokenizer, SETTINGS).batches(BATCH)
    with pytest.raises(UserError, match="No file matches"):
        TrainingText(Corpus(f"{tmp_path}/b*"), tokenizer, SETTINGS)


def test_damage_is_a_sentence_whenever_it_shows(tmp_path, documents_text, tokenizer):
    whole = gzip.compress("\n\n".join(documents_text[:200]).encode("utf-8"))
    (tmp_path / "a.txt.gz").write_bytes(whole[:-2000])
    damaged = TrainingText(Corpus(f"{tmp_path}/a.txt.gz", "lines"), tokenizer, SETTINGS)
    with pytest.raises(UserError, match=r"a.txt.gz is not a complete gzip file"):
        damaged.batches(BATCH, start_step=10_000)


def test_a_file_that_vanished_is_named(tmp_path, documents_text, tokenizer):
    (tmp_path / "a.txt").write_text("\n\n".join(documents_text[:20]))
    text = TrainingText(Corpus(f"{tmp_path}/a.txt", "lines"), tokenizer, SETTINGS)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"a.txt"):
        text.batches(BATCH)


def test_what_is_wrong_with_the_text_is_said_once(tmp_path, documents_text, tokenizer, capfd):
    for name in "ab":
        lines = [
            "\n\n".join(documents_text[:20]).encode(),
            b"D\xe9j\xe0 vu.",
            "日 本 語".encode() * 500,
        ]
        (tmp_path / f"{name}.txt").write_bytes(b"\n\n".join(lines))
    text = TrainingText(Corpus(f"{tmp_path}/*.txt", "lines"), tokenizer, SETTINGS)
    size = text.count(1 << 40)
    said = capfd.readouterr().err
    for name in "ab":
        assert said.count(f"/{name}.txt:") == 1
    assert said.count("warning: input: invalid UTF-8, replaced by U+FFFD: 2\n") == 1
    assert said.count("of the tokens are <unk>") == 1
    list(text.batches(BATCH).take(size // BATCH + 1))
    assert "U+FFFD" not in capfd.readouterr().err


def test_examples_and_unknown_pieces_are_counted(text, monkeypatch):
    shares = []
    monkeypatch.setattr(files, "unknown_warning", shares.append)
    groups = tf.range(len(text._groups), dtype=tf.int64)
    ids = [columns["token_ids"].numpy() for columns in text._examples(groups)]
    assert text.count(1 << 40) == sum(map(len, ids))
    tokens = sum(map(np.count_nonzero, ids))
    unknown = sum(np.count_nonzero(some == text._tokenizer.unk_id) for some in ids)
    assert shares == [unknown / tokens]


def test_text_that_gives_no_example_names_its_problems(tmp_path, tokenizer):
    (tmp_path / "a.jsonl").write_text('{"body": "One. Two."}\n')
    with pytest.raises(UserError, match="between documents: .*a.jsonl:1: no text in field 'text'"):
        TrainingText(Corpus(f"{tmp_path}/a.jsonl"), tokenizer, SETTINGS).batches(BATCH)
