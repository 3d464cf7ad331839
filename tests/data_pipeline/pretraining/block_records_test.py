"""A block becomes files and a note; a finished block is found again, and only the same one."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.corpus.blocks import TextBlock
from data_pipeline.corpus.documents import Corpus
from data_pipeline.corpus.text_part import TextPart
from data_pipeline.pretraining import examples
from data_pipeline.pretraining.block_records import Job, finished_block, note_path, process_block
from data_pipeline.pretraining.settings import PretrainingSettings

SETTINGS = PretrainingSettings(max_seq_length=16, dupe_factor=2, masking="static")


@pytest.fixture
def job(tmp_path, wordpiece):
    """Small static records in two copies, by the plain tokenizer."""
    return Job(
        Corpus((), "lines"), SETTINGS, wordpiece.vocab_file, wordpiece.settings,
        wordpiece.identity, str(tmp_path), fast=False,
    )  # fmt: skip


@pytest.fixture
def block(small_corpus):
    part = TextPart("a.txt", "lines", 1, small_corpus(18).encode())
    return TextBlock(2, 3, [part], 100)


def test_what_is_made_of_a_block(tmp_path, job, block, wordpiece):
    made = process_block(block, [], job, wordpiece)
    assert made.name == "00002-00003"
    assert made.text_bytes == len(block.parts[0].content)
    assert [shard["name"] for shard in made.shards] == [
        "pretraining-00002-00003-00.tfrecord", "pretraining-00002-00003-01.tfrecord",
    ]  # fmt: skip
    for shard in made.shards:
        content = (tmp_path / (job.prefix + shard["name"])).read_bytes()
        assert shard["bytes"] == len(content)
        assert shard["sha256"] == hashlib.sha256(content).hexdigest()
        records = tf.data.TFRecordDataset(str(tmp_path / (job.prefix + shard["name"])))
        assert shard["num_records"] == len(list(records)) > 5
    assert len({shard["sha256"] for shard in made.shards}) == 2, "copies differ"
    assert made.statistics.corpus["documents"] == 3 and made.statistics.corpus["sentences"] == 18
    assert made.statistics.records["records"] == sum(s["num_records"] for s in made.shards)
    assert json.loads(Path(note_path(job, "00002-00003")).read_text()) == made.to_json()


def test_records_do_not_depend_on_how_many_are_made_at_once(
    tmp_path, job, block, wordpiece, monkeypatch
):
    """The order of masks does, so that it is text that is tokenized in portions."""
    whole = process_block(block, [], job, wordpiece)
    monkeypatch.setattr(examples, "_CHARACTERS_AT_ONCE", 100)
    (tmp_path / "again").mkdir()
    again = dataclasses.replace(job, folder=str(tmp_path / "again"))
    assert process_block(block, [], again, wordpiece).shards == whole.shards
    (tmp_path / "fast").mkdir()
    fast = dataclasses.replace(job, folder=str(tmp_path / "fast"), fast=True)
    assert process_block(block, [], fast).shards == whole.shards, "it loads the tokenizer itself"


def test_documents_may_be_dropped_or_without_pair(job, wordpiece):
    content = b"the cat sat.\n\nthe\n\na dog ran off.\nit was old.\n"
    block = TextBlock(0, 0, [TextPart("a.txt", "lines", 1, content)], 0)
    made = process_block(block, [2], job, wordpiece)
    assert made.report.problems == {"duplicate document, dropped": 1}
    assert made.statistics.corpus["documents"] == 2
    assert made.statistics.skipped == {"chunk of a single word": 2, "document without a pair": 1}
    none = process_block(dataclasses.replace(block, index=1), [0, 2], job, wordpiece)
    assert none.shards == [] and none.statistics.records["records"] == 0
    found = finished_block(dataclasses.replace(block, index=1), [0, 2], job)
    assert found.to_json() == none.to_json()


def test_anything_else_is_another_block(tmp_path, job, block, wordpiece):
    process_block(block, [], job, wordpiece)
    [part] = block.parts
    for change in (
        dict(path="b.txt"), dict(input_format="paragraphs"), dict(first_line=2),
        dict(content=part.content + b"."), dict(problems=[("a.txt:1", "odd")]),
    ):  # fmt: skip
        other = dataclasses.replace(block, parts=[dataclasses.replace(part, **change)])
        assert finished_block(other, [], job) is None
    assert finished_block(block, [1], job) is None
    other_seed = dataclasses.replace(job, settings=dataclasses.replace(SETTINGS, seed=1))
    assert finished_block(block, [], other_seed) is None
    assert finished_block(block, [], job) is not None


@pytest.mark.parametrize("damage", ["missing", "short", "note"])
def test_without_its_files_a_block_is_not_finished(tmp_path, job, block, wordpiece, damage):
    made = process_block(block, [], job, wordpiece)
    path = tmp_path / (job.prefix + made.shards[1]["name"])
    content = path.read_bytes()
    if damage == "short":
        path.write_bytes(content[:-1])
    elif damage == "missing":
        path.unlink()
    else:
        Path(note_path(job, "00002-00003")).unlink()
    assert finished_block(block, [], job) is None
    again = process_block(block, [], job, wordpiece)
    assert again.to_json() == made.to_json() and path.read_bytes() == content


def test_fingerprints_tell_what_decides(job):
    same = [dict(folder="/other"), dict(fast=True), dict(corpus=Corpus("x", deduplicate=True))]
    for change in [*same, dict(vocab_file="/copy/vocab.txt")]:
        assert dataclasses.replace(job, **change).fingerprint == job.fingerprint
    for change in (
        dict(corpus=Corpus((), text_field="body")), dict(corpus=Corpus((), language="de")),
        dict(identity=("other", True, "google")), dict(identity=(*job.identity, False, True)),
        dict(settings=dataclasses.replace(SETTINGS, max_seq_length=17)),
    ):  # fmt: skip
        assert dataclasses.replace(job, **change).fingerprint != job.fingerprint
