"""A corpus becomes complete, balanced, reproducible records; or nothing, with a reason."""

import collections
import concurrent.futures
import gc
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline import block_records, features, masking, pretraining_data, records
from data_pipeline.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining_data import create_pretraining_data
from data_pipeline.pretraining_settings import PretrainingSettings
from data_pipeline.text_blocks import TextBlock, TextPart
from data_pipeline.text_ranges import TextRange
from data_pipeline.tokenization import load_tokenizer

ROOT = Path(__file__).parents[2]


def create(source, folder, tokenizer, overwrite=False, deduplicate=False, **settings):
    options = {"shard_mb": settings.pop("shard_mb", 0.05)}
    options["num_processes"] = settings.pop("num_processes", 1)
    defaults = {"max_seq_length": 64, "dupe_factor": 1, "masking": "static"}
    settings = PretrainingSettings(**{**defaults, **settings})
    return create_pretraining_data(
        Corpus(str(source), deduplicate=deduplicate),
        str(folder),
        tokenizer,
        settings,
        overwrite=overwrite,
        **options,
    )


def contents(folder):
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def read(folder):
    manifest = records.read_manifest(str(folder))
    schema = features.schema_of(manifest)
    serialized = list(
        tf.data.TFRecordDataset(records.record_files(records.read_manifest(str(folder))))
    )
    columns = {name: v.numpy() for name, v in features.parse(schema, tf.stack(serialized)).items()}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


@pytest.fixture(scope="module")
def rows(records_dir):
    return read(records_dir)


def test_manifest_counts_what_was_written(records_dir, rows, tokenizer, documents_text):
    manifest = records.read_manifest(records_dir)
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


def test_wordpiece_vocabularies_serve_as_well(small_file, tmp_path):
    vocab_file = Path(__file__).parents[1] / "goldens" / "wordpiece" / "vocab.txt"
    tokenizer = load_tokenizer(str(vocab_file))
    manifest = create(small_file, tmp_path / "data", tokenizer)
    assert manifest["vocab_file"] == "vocab.txt"
    copied = load_tokenizer(str(tmp_path / "data" / "vocab.txt"))
    assert copied.fingerprint == manifest["vocab_fingerprint"] == tokenizer.fingerprint
    for row in read(tmp_path / "data")[:50]:
        length = row["input_mask"].sum()
        assert row["input_ids"][0] == tokenizer.cls_id
        assert row["input_ids"][length - 1] == tokenizer.sep_id


def test_records_are_well_formed(rows, tokenizer):
    special = set(tokenizer.special_ids)
    for row in rows:
        length, count = int(row["input_mask"].sum()), int(row["masked_lm_weights"].sum())
        tokens = row["input_ids"].copy()
        tokens[row["masked_lm_positions"][:count]] = row["masked_lm_ids"][:count]
        assert np.all(row["input_mask"] == (np.arange(64) < length)) and not tokens[length:].any()
        separators = np.flatnonzero(tokens == tokenizer.sep_id)
        assert (
            tokens[0] == tokenizer.cls_id and len(separators) == 2 and separators[1] == length - 1
        )
        assert np.all(row["segment_ids"][:length] == (np.arange(length) > separators[0]))
        assert not special - {tokenizer.unk_id} & set(row["masked_lm_ids"][:count].tolist())
        assert count <= masking.prediction_budgets(np.array([length]), 0.15, 10)[0]


def test_shares_are_as_asked_for(rows):
    labels = np.array([row["next_sentence_labels"][0] for row in rows])
    assert len(labels) > 2000
    assert abs(labels.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(labels))
    predictions = sum(row["masked_lm_weights"].sum() for row in rows)
    rate = predictions / sum(row["input_mask"].sum() for row in rows)
    assert 0.14 < rate < 0.155
    masks = sum(
        (row["input_ids"][row["masked_lm_positions"]] == 4)[row["masked_lm_weights"] > 0].sum()
        for row in rows
    )
    assert abs(masks / predictions - 0.8) < 5 * np.sqrt(0.16 / predictions)


def test_sentence_order_never_mixes_documents(tmp_path, tokenizer):
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
    manifest = records.read_manifest(str(tmp_path / "data"))
    assert manifest["statistics"]["skipped"]["document without a pair"] == len(words)


def test_same_seed_same_bytes(tmp_path, small_file, tokenizer):
    first = create(small_file, tmp_path / "a", tokenizer)
    again = create(small_file, tmp_path / "b", tokenizer)
    other = create(small_file, tmp_path / "c", tokenizer, seed=1)
    assert first == again and first["files"] != other["files"]
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


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


@pytest.mark.parametrize("masking", ["static", "dynamic"])
def test_any_number_of_processes_gives_the_same_bytes(tmp_path, corpus_file, tokenizer, masking):
    options = dict(masking=masking, dupe_factor=2, deduplicate=True)
    create(corpus_file, tmp_path / "1", tokenizer, **options)
    expected = contents(tmp_path / "1")
    assert len(expected) > 10
    for count in (2, 8):
        create(corpus_file, tmp_path / str(count), tokenizer, num_processes=count, **options)
        assert contents(tmp_path / str(count)) == expected


def test_copies_differ(tmp_path, small_file, tokenizer):
    create(small_file, tmp_path / "a", tokenizer, dupe_factor=2, short_seq_prob=0.0)
    seen = collections.Counter(row["input_ids"].tobytes() for row in read(tmp_path / "a"))
    assert sum(count - 1 for count in seen.values()) < 0.02 * sum(seen.values())


def test_objectives(tmp_path, small_file, tokenizer):
    create(small_file, tmp_path / "nsp", tokenizer, sentence_objective="nsp")
    labels = np.array([row["next_sentence_labels"][0] for row in read(tmp_path / "nsp")])
    assert abs(labels.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(labels))
    manifest = create(small_file, tmp_path / "none", tokenizer, sentence_objective="none")
    assert manifest["statistics"]["label_balance"] == 0
    assert not any(row["segment_ids"].any() for row in read(tmp_path / "none"))
    (tmp_path / "one.txt").write_text("One document.\nOf two sentences.\n")
    with pytest.raises(UserError, match="no other document beside it"):
        create(tmp_path / "one.txt", tmp_path / "x", tokenizer, sentence_objective="nsp")


@pytest.mark.parametrize("content", [b"", b"\n\n\n", b"word\n\nword\n", b"\0\0\n"])
def test_nothing_usable_leaves_nothing(tmp_path, tokenizer, content):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(UserError, match=r"No record could be made of 1 file.*a.txt"):
        create(tmp_path / "a.txt", tmp_path / "data", tokenizer)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_existing_data_are_kept_unless_told(tmp_path, small_file, tokenizer):
    create(small_file, tmp_path / "a", tokenizer)
    with pytest.raises(UserError, match="--overwrite"):
        create(small_file, tmp_path / "a", tokenizer, seed=2)
    create(small_file, tmp_path / "a", tokenizer, seed=2, overwrite=True)
    assert records.verify_records(str(tmp_path / "a"), full=True)["seed"] == 2


def test_problems_of_the_input_are_in_the_manifest(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_bytes(b"A file here.\nAnother \xff value.\nAnd a name.\n")
    corpus = create(tmp_path / "a.txt", tmp_path / "data", tokenizer)["corpus"]
    assert corpus["problem_examples"][0].endswith("a.txt:2: invalid UTF-8, replaced by U+FFFD")


def test_duplicates_are_dropped_on_request(tmp_path, small_file, tokenizer):
    (tmp_path / "b.txt").write_bytes(Path(small_file).read_bytes() + b"\n\nA new text here.\n")
    both = f"{small_file},{tmp_path}/b.txt"
    single = create(small_file, tmp_path / "one", tokenizer)["corpus"]["documents"]
    for deduplicate, count in ((False, 2 * single + 1), (True, single + 1)):
        folder = tmp_path / str(deduplicate)
        corpus = create(both, folder, tokenizer, deduplicate=deduplicate)["corpus"]
        assert corpus["documents"] == count
    assert corpus["problems"]["duplicate document, dropped"] == single


def test_finished_blocks_are_kept(tmp_path, corpus_file, tokenizer, monkeypatch):
    """A failure in the middle: what is finished is not made again, and the end is the same."""
    whole = create(corpus_file, tmp_path / "whole", tokenizer)
    made, process = [], block_records._tokenize

    def failing(documents, tokenizer):
        made.append(1)
        if len(made) == 4:
            raise OSError(28, "No space left on device")
        return process(documents, tokenizer)

    monkeypatch.setattr(block_records, "_tokenize", failing)
    with pytest.raises(UserError, match="No room is left.*what is finished is kept"):
        create(corpus_file, tmp_path / "a", tokenizer)
    with pytest.raises(UserError, match=r"holds no manifest.json"):
        records.read_manifest(str(tmp_path / "a"))
    assert create(corpus_file, tmp_path / "a", tokenizer) == whole
    assert len(made) == 4 + len(whole["files"]) - 3
    assert contents(tmp_path / "a") == contents(tmp_path / "whole")


def test_memory_does_not_grow_with_the_blocks(tmp_path, corpus_file, tokenizer, monkeypatch):
    """A block more costs what the manifest says of it, not what was counted in it."""
    create(corpus_file, tmp_path / "first", tokenizer)
    process_block, made, names = block_records.process_block, [], []

    def copy_of_the_first(block, dropped, job, *unused):
        names.append(block.name)
        if not made:
            made.append(process_block(block, dropped, job).to_json())
        return block_records.BlockResult.from_json({**made[0], "name": block.name})

    monkeypatch.setattr(block_records, "process_block", copy_of_the_first)
    peaks = []
    for shard_mb in (0.01, 0.01, 0.001):  # The first fills caches.
        names.clear()
        gc.collect()
        tracemalloc.start()
        create(corpus_file, tmp_path / str(len(peaks)), tokenizer, shard_mb=shard_mb)
        peaks.append((len(names), tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
    _, (few, low), (many, high) = peaks
    assert many > few + 300
    assert (high - low) / (many - few) < 4000, f"{peaks}: its counts take 8 * 2,500 bytes"


def test_blocks_of_another_run_are_not_taken_for_finished(tmp_path, corpus_file, tokenizer):
    """Same folder, other seed, text or vocabulary rules."""
    create(corpus_file, tmp_path / "whole", tokenizer, seed=2)
    create(corpus_file, tmp_path / "a", tokenizer, seed=1)
    partial = tmp_path / "b" / ".partial"
    partial.mkdir(parents=True)
    for path in (tmp_path / "a").glob("*.tfrecord"):
        path.rename(partial / path.name)
    create(corpus_file, tmp_path / "b", tokenizer, seed=2)
    assert contents(tmp_path / "b") == contents(tmp_path / "whole")


def test_killed_at_any_moment_and_run_again(tmp_path, corpus_file, tokenizer):
    """kill -9 of the program, whose workers end with it: the result is the same to the byte."""
    flags = [
        f"--input={corpus_file}",
        f"--vocab_file={tokenizer.vocab_file}",
        "--max_seq_length=64",
        "--dupe_factor=2",
        "--shard_mb=0.02",
        "--num_processes=2",
    ]

    def start(name):
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "data_pipeline.create_pretraining_data",
                f"--output_dir={tmp_path / name}",
                *flags,
            ],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    begin = time.monotonic()
    assert start("whole").wait() == 0
    duration = time.monotonic() - begin
    rng = np.random.default_rng(0)
    kills = 0
    for _ in range(12):
        process = start("a")
        try:
            process.wait(float(rng.uniform(0.2, 0.9 * duration)))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            if (tmp_path / "a" / "manifest.json").exists():  # It was done, but for tidying up.
                shutil.rmtree(tmp_path / "a" / ".partial", ignore_errors=True)
                break
    else:
        assert start("a").wait() == 0
    assert kills
    assert contents(tmp_path / "a") == contents(tmp_path / "whole")


def test_workers_end_with_a_killed_program(tmp_path, corpus_file, tokenizer):
    command = [
        sys.executable, "-m", "data_pipeline.create_pretraining_data", f"--input={corpus_file}",
        f"--vocab_file={tokenizer.vocab_file}", f"--output_dir={tmp_path / 'a'}",
        "--dupe_factor=500", "--num_processes=2", "--shard_mb=0.02",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if not Path("/proc/self/stat").exists():
        process.kill()
        pytest.skip("this system does not list its processes")
    deadline = time.monotonic() + 60
    while len(workers := _children(process.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)  # Two workers, and multiprocessing's own helper.
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(workers) >= 3
    while any(map(_is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_is_alive, workers))


def _stat(pid):
    """State and parent of a process; None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()[:2]


def _children(pid):
    pids = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [child for child in pids if (_stat(child) or ["", ""])[1] == str(pid)]


def _is_alive(pid):
    return (_stat(pid) or "Z")[0] != "Z"


def test_little_text_waits_for_the_other_processes(monkeypatch):
    """Blocks that carry their text are read ahead up to so many bytes, places of text freely."""
    held = []

    class Pool(concurrent.futures.ThreadPoolExecutor):
        def __init__(self, num_processes, mp_context, initializer):
            super().__init__(1)

    def text_block(index):
        part = TextPart("a.txt", "lines", 1, bytes(100))
        return TextBlock(0, index, [part], 50)

    def blocks(block):
        for index in range(20):
            held.append(index - len(finished))
            yield block(index), []

    def text_range(index):
        return TextRange(0, index, "a.txt", "lines", 0, 50, False, 0)

    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(block_records, "process_block", lambda block, dropped, job: block.index)
    monkeypatch.setattr(pretraining_data, "_BYTES_AHEAD", 300)
    for block, most in ((text_block, 3), (text_range, 16)):
        finished: list[tuple[int, int]] = []
        for result in pretraining_data._process_in_parallel(blocks(block), None, 8):
            finished.append(result)
        assert sorted(finished) == [(50, index) for index in range(20)]
        assert most - 1 <= max(held) < most + 1
        held.clear()
