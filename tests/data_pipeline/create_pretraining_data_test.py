"""The program in this process: what it says of the records, its warnings, its flags' limits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline import pretraining
from data_pipeline.records import record_folder
from data_pipeline.tokenizers.loading import load_tokenizer

VOCABULARY = Path(__file__).parents[1] / "goldens" / "wordpiece" / "vocab.txt"


@pytest.fixture
def create(result_of, tmp_path, small_corpus):
    """(*flags) -> exit code, stdout, stderr, for a small corpus in a.txt."""
    (tmp_path / "a.txt").write_text(small_corpus(18))

    def run(*argv: str) -> tuple[int, str, str]:
        found = result_of(
            "data_pipeline.create_pretraining_data", f"--input={tmp_path}/a.txt",
            f"--vocab_file={VOCABULARY}", f"--output_dir={tmp_path}/data", "--max_seq_length=16",
            *argv,
        )  # fmt: skip
        return found.returncode, found.stdout, found.stderr

    return run


def test_records_and_the_next_commands(create, tmp_path):
    code, shown, errors = create("--num_processes=1", "--masking=static", "--dupe_factor=2")
    assert code == 0, errors
    manifest = record_folder.verify_records(f"{tmp_path}/data", full=True)
    assert (manifest["masking"], manifest["settings"]["dupe_factor"]) == ("static", 2)
    assert (manifest["seed"], manifest["settings"]["input_format"]) == (12345, "auto")
    lines = shown.splitlines()
    assert lines[0] == f"Wrote {tmp_path}/data:" and lines[1].split() == ["documents", "3"]
    assert lines[-2:] == [
        f"Look:  python -m data_pipeline.inspect_records --data={tmp_path}/data",
        "Next:  python -m albert_tf.run_pretraining --preset=albert-small "
        f"--train_data={tmp_path}/data --output_dir=RUN --train_batch_size=64 "
        "--learning_rate=0.004 --num_train_steps=20000 --num_warmup_steps=1000",
    ]
    assert manifest["corpus"]["formats"] == ["lines"] and "format   " in shown
    assert "corpus: 100%" in errors and "warning" not in errors
    assert create("--num_processes=1")[0] == 2, "data are there already"
    assert create("--num_processes=1", "--overwrite", "--fast=off")[0] == 0
    assert record_folder.read_manifest(f"{tmp_path}/data")["masking"] == "dynamic"


@pytest.mark.parametrize(
    "flags", [(), ("--sentence_objective=nsp",), ("--pack_documents", "--sentence_objective=none")]
)
def test_the_share_of_the_text_in_the_records(create, tmp_path, flags):
    """Counted again by hand, from one copy of the text without random segments."""
    code, shown, errors = create(
        "--num_processes=1", "--dupe_factor=1", "--short_seq_prob=0", *flags
    )
    assert code == 0, errors
    corpus = record_folder.read_manifest(f"{tmp_path}/data")["corpus"]
    assert f"share in the records        {corpus['held_share']:.1%}" in shown
    if flags == ("--sentence_objective=nsp",):  # Segments of other documents are there twice.
        assert 0.5 < corpus["held_share"] <= 1
        return
    held, sep_id = 0, load_tokenizer(str(VOCABULARY)).sep_id
    for path in Path(tmp_path, "data").glob("*.tfrecord"):
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            ids = tf.train.Example.FromString(record).features.feature["token_ids"].int64_list.value
            held += sum(i != sep_id for i in ids)
    assert corpus["held_share"] == held / corpus["tokens"]
    assert corpus["held_share"] == 1 or flags == ()


def test_problems_and_unknown_pieces_are_warnings(create, tmp_path):
    with open(tmp_path / "a.txt", "ab") as file:
        file.write(("\n\n" + "🂡 " * 50 + "\n🂡 🂡.\n").encode() + b"N\0L is here.\n")
    code, _, errors = create("--num_processes=1")
    assert code == 0, errors
    [place, unknown] = [line for line in errors.splitlines() if line.startswith("warning")]
    assert place.endswith("NUL bytes, replaced by spaces") and "a.txt:" in place
    assert "of the tokens are <unk>" in unknown


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--pipeline_option=--region=x"], "--pipeline_option=--region=x is for Apache Beam, whi"),
        (["--runner=R", "--num_processes=2"], "--num_processes has no effect with --runner=R. L"),
    ],
)
def test_flags_that_would_do_nothing_are_refused(create, argv, message):
    code, shown, errors = create(*argv)
    assert code == 2 and not shown
    assert errors.startswith(f"create_pretraining_data.py: error: {message}")


def test_without_beam_one_sentence_says_what_to_install(create, monkeypatch, tmp_path):
    monkeypatch.delattr(pretraining, "beam", raising=False)
    monkeypatch.setitem(sys.modules, "data_pipeline.pretraining.beam", None)
    code, _, errors = create("--runner=DirectRunner")
    assert code == 2 and "--runner=DirectRunner needs a package that cannot be imported" in errors
    assert 'pip install "albert-tf[beam]"' in errors
    assert not (tmp_path / "data").exists()
