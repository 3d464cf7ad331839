"""Batches straight from text files: the data of an epoch, in an order that steps resume."""

import collections
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.corpus import blocks
from data_pipeline.corpus.documents import Corpus
from data_pipeline.corpus.report import MAX_EXAMPLES
from data_pipeline.errors import UserError
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.without_records import files
from data_pipeline.pretraining.without_records.files import TrainingText
from data_pipeline.records import record_folder

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
        patch.setattr(files, "automatic_block_bytes", lambda size: 6000)  # Many groups of files.
        patch.setattr(files, "SHUFFLE_WINDOW", 100)
        yield TrainingText(Corpus(f"{folder}/*.txt,{folder}/*.gz", "lines"), tokenizer, SETTINGS)


@pytest.mark.parametrize(
    ("kind", "num_processes"),
    [
        *(("lines", 2), ("packed", 1), ("chunks", 1)),
        *(pytest.param(*row, marks=pytest.mark.table) for row in (("lines", 1), ("jsonl", 1))),
    ],
)
def test_an_epoch_is_the_records_of_the_program(
    documents_text, tmp_path, tokenizer, monkeypatch, kind, num_processes
):
    """Byte for byte, of files that are divided, or fill a block together, or are compressed."""
    monkeypatch.setattr(blocks, "MIN_BLOCK_BYTES", 60_000)
    texts = [
        "\n\n".join(documents_text[i : i + n])
        for i, n in ((0, 200), (200, 40), (240, 40), (280, 90))
    ]
    if kind == "jsonl":
        texts = [
            "".join(json.dumps({"text": each}) + "\n" for each in text.split("\n\n"))
            for text in texts
        ]
    for number, text in enumerate(texts):
        opened = gzip.open if number == 3 else open
        name = f"{number}.{kind}.gz" if number == 3 else f"{number}.{kind}"
        with opened(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write(text)
    options = {"max_seq_length": 64, "seed": 5}
    if kind == "packed":
        options |= {"sentence_objective": "none", "pack_documents": True}
    if kind == "chunks":
        options |= {"segments": "dynamic"}
    settings = PretrainingSettings(masking="dynamic", dupe_factor=1, **options)
    corpus = Corpus(f"{tmp_path}/*.{kind}*", "jsonl" if kind == "jsonl" else "lines")
    records = str(tmp_path / "records")
    create_pretraining_data(corpus, records, tokenizer, settings, num_processes=num_processes)
    manifest = record_folder.read_manifest(records)
    assert manifest["num_shards"] > 2
    paths = record_folder.record_files(manifest)
    expected = list(tf.data.TFRecordDataset(paths).as_numpy_iterator())
    text = TrainingText(corpus, tokenizer, settings)
    found = list(text.epoch(0, tf.constant(0, tf.int64)).as_numpy_iterator())
    assert found != expected, "in another order"
    assert sorted(found) == sorted(expected)
    assert text.count(1 << 40) == len(expected) > 500


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
    (tmp_path / "a.jsonl").write_text('{"body": "One. Two."}\n')
    with pytest.raises(UserError, match="between documents: .*a.jsonl:1: no text in field 'text'"):
        TrainingText(Corpus(f"{tmp_path}/a.jsonl"), tokenizer, SETTINGS).batches(BATCH)
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
            *[b"D\xe9j\xe0 vu."] * 12,
            "日 本 語".encode() * 500,
        ]
        (tmp_path / f"{name}.txt").write_bytes(b"\n\n".join(lines))
    text = TrainingText(Corpus(f"{tmp_path}/*.txt", "lines"), tokenizer, SETTINGS)
    size = text.count(1 << 40)
    said = capfd.readouterr().err
    assert said.count("/a.txt:") + said.count("/b.txt:") == MAX_EXAMPLES
    assert said.count("warning: input: invalid UTF-8, replaced by U+FFFD: 24\n") == 1
    assert said.count("of the tokens are <unk>") == 1
    list(text.batches(BATCH).take(size // BATCH + 1))
    assert "U+FFFD" not in capfd.readouterr().err


def test_examples_and_unknown_pieces_are_counted(text, monkeypatch):
    shares = []
    monkeypatch.setattr(files, "unknown_warning", shares.append)
    epoch = text.epoch(0, tf.constant(0, tf.int64))
    assert text.count(1 << 40) == sum(1 for _ in epoch)
    ids = np.concatenate(
        [block.text.ids for group in range(len(text._groups)) for block in text._blocks(group)]
    )
    assert shares == [np.mean(ids == text._tokenizer.unk_id)]
