"""Flags that contradict each other or mean nothing: each is refused by a sentence with its name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

FINETUNING = (
    "albert_tf.run_finetuning",
    *("--task=tsv", "--train_file={files}/train.tsv", "--dev_file={files}/train.tsv"),
    "--init_checkpoint=albert-small-en",
)
ENSEMBLE = ("albert_tf.run_ensemble", "--task=tsv", "--dev_file={files}/train.tsv")
RECORDS = (
    "data_pipeline.create_pretraining_data",
    *("--input={files}/corpus.jsonl", "--vocab_file={files}/vocab.txt"),
)
VOCABULARY = ("data_pipeline.train_vocabulary", "--input={files}/corpus.jsonl")
ADOPT = ("data_pipeline.adopt_records", "--vocab_file={files}/vocab.txt")
PRETRAINING = ("albert_tf.run_pretraining", "--train_data={files}/records", "--preset=albert-tiny")
SERVER = ("export.server.__main__", "--rest_port=0", "--grpc_port=0")

# Program, flags, what the message says.
CASES = [
    (FINETUNING, ["--pair_column=label"], "--label_column=label is the column of --pair_column"),
    (FINETUNING, ["--pair_column=text"], "--pair_column=text is the column of --text_column"),
    (FINETUNING, ["--label_column=text"], "--label_column=text is the column of --text_column"),
    (
        FINETUNING,
        ["--train_file={files}/twice.tsv"],
        "twice.tsv:1: 2 columns are named 'text'",
    ),
    (
        FINETUNING,
        ["--num_train_epochs=3", "--num_train_steps=5"],
        "--num_train_steps=5 are both given",
    ),
    (FINETUNING, ["--predict_file=/nowhere"], "--predict_file=/nowhere does not exist"),
    (FINETUNING, ["--splits=nope"], "--splits=nope is for --mode=eval or --mode=predict"),
    (FINETUNING, ["--only_windows_with_answer"], "--only_windows_with_answer means nothing"),
    (FINETUNING, ["--doc_stride=64"], "--doc_stride means nothing to --task=tsv"),
    (FINETUNING, ["--max_qa_length=64"], "--max_qa_length means nothing to --task=tsv"),
    (
        FINETUNING,
        ["--distribution=multi_worker_mirrored"],
        "_mirrored takes its workers from",
    ),
    (ENSEMBLE, ["--runs={files}/a,{files}/./a/"], "--runs names {files}/a twice. Name each run"),
    (
        ENSEMBLE,
        ["--runs={files}/a", "--checkpoints=best,best"],
        "best,best: Name some of best, last",
    ),
    (RECORDS, ["--input={files}/vocab.txt,{files}/vocab.txt"], "vocab.txt' is named twice as inp"),
    (RECORDS, ["--language=klingon"], "--language=klingon is not an ISO code of a language;"),
    (
        RECORDS,
        ["--input_format=wikiextractor"],
        "corpus.jsonl is JSON by its name, but",
    ),
    (VOCABULARY, ["--vocab_size=2147483647"], "--vocab_size=2147483647: expected an integer from"),
    (VOCABULARY, ["--vocab_size=1"], "--vocab_size=1: expected an integer from 16 to 1,000,000"),
    (VOCABULARY, ["--input_sentence_size=1"], "--input_sentence_size=1: expected an integer from"),
    (RECORDS, ["--deduplicate=maybe"], "--deduplicate=maybe: expected true or false. Drop docum"),
    (PRETRAINING, ["--allow_changes=everything"], "--allow_changes=everything: Name some of"),
    (ADOPT, ["--data={files}/vocab.txt"], "--data={files}/vocab.txt is a file. Name a folder."),
    (ADOPT, ["--data={files}/records"], "--data={files}/records already holds data"),
    (ADOPT, ["--data={files}/noise"], "of one length: corrupted record at 0"),
    (SERVER, ["--model_config_file={files}/noise/a.tfrecord"], "a.tfrecord is not text in UTF-8."),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder with what the programs read."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "train.tsv").write_text("text\tlabel\none\ta\ntwo\tb\n")
    (folder / "twice.tsv").write_text("text\ttext\tlabel\none\ttwo\ta\nthree\tfour\tb\n")
    (folder / "corpus.jsonl").write_text('{"text": "One sentence here. And another one."}\n')
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one"]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    (folder / "a").mkdir()
    (folder / "records").mkdir()
    (folder / "records" / "manifest.json").write_text("{}")
    (folder / "noise").mkdir()
    (folder / "noise" / "a.tfrecord").write_bytes(bytes(range(256)) * 4)
    return folder


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        pytest.param(
            *case, id=",".join(case[1])[:40], marks=[pytest.mark.table] if number % 4 else []
        )
        for number, case in enumerate(CASES)
    ],
)
def test_refused(quick_python, monkeypatch, files, tmp_path, program, arguments, message):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    needs_output = program not in (ADOPT, SERVER)
    given = [*program, *arguments, *([f"--output_dir={tmp_path / 'out'}"] if needs_output else [])]
    command = [quick_python, "-m", *(argument.format(files=files) for argument in given)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2 and "Traceback" not in result.stderr, result.stderr
    assert message.format(files=files) in result.stderr
    assert not any(sign in result.stderr for sign in ("{{", "['", "tempstate", "_interface.cc"))
    assert not (tmp_path / "out").exists()
