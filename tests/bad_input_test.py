"""Bad input, program by program: one clear error, exit code 2, and nothing half-written is left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from albert_tf.checkpoints import bundle
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.quiet import NOISE
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from tests.run_results import tensors


@pytest.fixture(scope="module")
def good(files) -> Path:
    """A folder with one good artifact of each kind, and records of two vocabularies."""
    corpus = str(files / "corpus.txt")
    train_vocabulary(corpus, str(files / "other_vocabulary"), 50)
    for name in ("vocabulary", "other_vocabulary"):
        tokenizer = load_tokenizer(str(files / name / "spiece.model"))
        records = str(files / name.replace("vocabulary", "records"))
        settings = PretrainingSettings(max_seq_length=32, dupe_factor=1)
        create_pretraining_data(Corpus(corpus), records, tokenizer, settings)
    return files


@pytest.fixture(scope="module")
def bad(tmp_path_factory, good) -> Path:
    """A folder with every bad artifact that the cases below name."""
    bad = tmp_path_factory.mktemp("bad")
    (bad / "empty.txt").write_bytes(b"")
    (bad / "blank.txt").write_text("\n \n\n")
    (bad / "words.txt").write_text("one\n\ntwo\n\nthree\n")
    (bad / "utf16.txt").write_bytes("A sentence.\n".encode("utf-16"))
    (bad / "columns.tsv").write_text("text\tlabel\none\ta\ntwo\n")

    shutil.copytree(good / "records", bad / "cut_records")
    shard = next((bad / "cut_records").glob("*.tfrecord"))
    content = shard.read_bytes()
    shard.write_bytes(content[:-20])
    shutil.copytree(good / "records", bad / "flipped_records")
    shard = next((bad / "flipped_records").glob("*.tfrecord"))
    shard.write_bytes(content[:100] + bytes([content[100] ^ 255]) + content[101:])
    (bad / "no_manifest").mkdir()

    weights = tensors(good / "model" / "model.ckpt")
    del weights["encoder/pooler/bias"]
    shutil.copytree(good / "model", bad / "lacking")
    bundle.write(str(bad / "lacking" / "model.ckpt"), weights)
    metadata = json.loads((bad / "lacking" / "model.json").read_text())
    del metadata["sha256"]  # What else is wrong is seen without hashes, too.
    (bad / "lacking" / "model.json").write_text(json.dumps(metadata))
    shutil.copytree(good / "model", bad / "cut_weights")
    data = next((bad / "cut_weights").glob("model.ckpt.data*"))
    data.write_bytes(data.read_bytes()[:100])
    shutil.copytree(good / "model", bad / "no_vocabulary")
    (bad / "no_vocabulary" / "spiece.model").unlink()
    (bad / "busy").mkdir()
    (bad / "busy" / "mine.txt").write_text("my own file")
    return bad


# Commands that would do their work.
TRAINING = "--output_dir={bad}/out --train_batch_size=4 --distribution=one_device"
VOCABULARY = (
    "data_pipeline.train_vocabulary --input={good}/corpus.txt --output_dir={bad}/out "
    "--vocab_size=48"
)
RECORDS = (
    "data_pipeline.create_pretraining_data --input={good}/corpus.txt --output_dir={bad}/out "
    "--vocab_file={good}/vocabulary/spiece.model --max_seq_length=32"
)
INSPECT = "data_pipeline.inspect_records --data={good}/records"
ADOPT = (
    "data_pipeline.adopt_records --data={bad}/no_manifest "
    "--vocab_file={good}/vocabulary/spiece.model"
)
PRETRAINING = (
    "albert_tf.run_pretraining --train_data={good}/records --config_file={good}/config.json "
    f"--num_train_steps=40 --num_warmup_steps=1 {TRAINING}"
)
CLASSIFIER = (
    "albert_tf.run_finetuning --task=tsv --train_file={good}/rows.tsv "
    f"--dev_file={{good}}/rows.tsv --init_checkpoint={{good}}/model --max_seq_length=32 {TRAINING}"
)
EXPORT = "export.run_export --model_dir={good}/model --output_dir={bad}/out --task=masked_lm"
CONVERT = "albert_tf.convert --input={good}/model --format=google"
ENSEMBLE = (
    "albert_tf.run_ensemble --task=tsv --dev_file={good}/rows.tsv --runs={bad}/busy "
    "--output_dir={bad}/out"
)
PREDICT = "export.predict --model={bad}/nowhere --text=text"
SERVER = "export.server.__main__ --rest_port=0 --grpc_port=0"

# Command, flags that differ (without a value: those left out), what the message says. Here is what
# programs do with their files; what one function refuses, whoever calls it, is in its own tests.
CASES = [
    (VOCABULARY, "--input={bad}/nowhere.txt", "No file matches '{bad}/nowhere.txt'"),
    (VOCABULARY, "--input={bad}", "{bad} is a folder; give the files in it"),
    (VOCABULARY, "--input={bad}/empty.txt", "{bad}/empty.txt holds no text"),
    (VOCABULARY, "--output_dir={good}/vocabulary", "exists already; choose another folder"),
    (RECORDS, "--input={bad}/blank.txt", "blank.txt: file without text"),
    (RECORDS, "--input={bad}/words.txt", "expected documents of at least two words"),
    (RECORDS, "--num_processes=2 --input={bad}/utf16.txt", "is UTF-16; convert it to UTF-8"),
    (RECORDS, "--input={good}/corpus.txt,{good}/corpus.txt", "corpus.txt' is named twice as inp"),
    (RECORDS, "--vocab_file={bad}/nowhere.model", "{bad}/nowhere.model does not exist"),
    (RECORDS, "--language=klingon", "--language=klingon is not an ISO code of a language;"),
    (RECORDS, "--output_dir={good}/records", "--overwrite"),
    (RECORDS, "--output_dir={bad}/empty.txt", "{bad}/empty.txt is a file"),
    (RECORDS, "--runner=NoRunner", "--runner"),
    (ADOPT, "--data={bad}/nowhere", "holds no file named like"),
    (ADOPT, "--data={bad}/words.txt", "--data={bad}/words.txt is a file. Name a folder."),
    (INSPECT, "--data={bad}/nowhere", "{bad}/nowhere does not exist"),
    (INSPECT, "--data={bad}/cut_records", ".tfrecord"),
    (PRETRAINING, "--train_data=", "--train_data is missing"),
    (PRETRAINING, "--train_data={bad}/no_manifest", "{bad}/no_manifest holds no manifest.json"),
    (PRETRAINING, "--train_data={bad}/flipped_records", "its content differs from manifest"),
    (PRETRAINING, "--eval_data={good}/other_records", "has 50 pieces, the model's"),
    (PRETRAINING, "--config_file=", "no architecture is given. Pass --preset"),
    (PRETRAINING, "--config_file={bad}", "--config_file={bad}: config file {bad} is a folder"),
    (PRETRAINING, "--init_checkpoint={bad}/nowhere", "checkpoint {bad}/nowhere does not exist"),
    (PRETRAINING, "--init_checkpoint={bad}/lacking", "missing: encoder/pooler/bias"),
    (PRETRAINING, "--init_checkpoint={bad}/cut_weights", "{bad}/cut_weights/model.ckpt"),
    (PRETRAINING, "--output_dir=", "--output_dir is missing: Folder of the run"),
    (PRETRAINING, "--output_dir=/proc/x", "--output_dir=/proc/x: /proc/x: No such file"),
    (PRETRAINING, "--output_dir={bad}/busy", "{bad}/busy is not empty and holds no run"),
    (PRETRAINING, "--train_batch_size=1000", "--train_batch_size=1000 is more than the"),
    (PRETRAINING, "--batch_size_schedule=8@0", "--train_batch_size=4 and --batch_size_schedule="),
    (PRETRAINING, "--mode=continuous_eval --eval_data={good}/records", "out holds no run"),
    (PRETRAINING, "--mode=continuous_eval", "--eval_data is missing"),
    (PRETRAINING, "--mode=eval", "--eval_data is missing"),
    (PRETRAINING, "--mode=eval --eval_data={good}/records", "out has no finished model"),
    (CLASSIFIER, "--train_file=", "--train_file is missing"),
    (CLASSIFIER, "--train_file={bad}", "--train_file={bad}: {bad} is a folder"),
    (CLASSIFIER, "--train_file={bad}/columns.tsv", "{bad}/columns.tsv:3: expected 2 tab"),
    (CLASSIFIER, "--train_batch_size=5000", "--train_batch_size=5000 is more than the 16"),
    (CLASSIFIER, "--init_checkpoint= --config_file={good}/config.json", "--vocab_file"),
    (CLASSIFIER, "--init_checkpoint={bad}/no_vocabulary", "spiece.model is missing"),
    (CLASSIFIER, "--mode=predict", "{good}/model holds a model for pretraining, and --"),
    (CLASSIFIER, "--mode=predict --init_checkpoint=", "{bad}/out/model is not a model"),
    (ENSEMBLE, "--runs={bad}/busy,{bad}/./busy/", "--runs names {bad}/busy twice. Name each run"),
    (ENSEMBLE, "--checkpoints=best,best", "best,best: Name some of best, last"),
    (CONVERT, "--output=/proc/x/y", "--output=/proc/x/y: /proc/x"),
    (EXPORT, "--model_dir={bad}/nowhere", "{bad}/nowhere is not a model folder"),
    (PREDICT, "", "{bad}/nowhere"),
    (SERVER, "--model=m={bad}/nowhere", "{bad}/nowhere"),
    (SERVER, "--model_config_file={bad}/utf16.txt", "utf16.txt is not text in UTF-8."),
]


def case_id(case: tuple[str, str, str]) -> str:
    return f"{case[0].split()[0].split('.')[1]} {case[1]}"


@pytest.mark.parametrize(("command", "changes", "message"), CASES, ids=map(case_id, CASES))
def test_bad_input(command, changes, message, good, bad, run_program, capfd, foreign_lines):
    folders = {"good": good, "bad": bad}
    module, *flags = f"{command} {changes}".split()
    given = dict(flag.split("=", 1) for flag in flags)
    argv = [f"{name}={value.format(**folders)}" for name, value in given.items() if value]
    before = {*good.rglob("*"), *bad.rglob("*")}
    with pytest.raises(SystemExit) as exit_info:
        run_program(module, *argv)
    shown = capfd.readouterr().err
    assert exit_info.value.code == 2, shown
    progress, _, error = shown.partition(": error: ")
    assert error and "Traceback" not in shown
    # In this process native code writes past the filter that the programs have.
    lines = progress.encode("utf-8").split(b"\n")[:-1]
    seen = b"\n".join(line for line in lines if not NOISE.match(line)).decode("utf-8")
    assert not foreign_lines(seen)
    assert message.format(**folders) in shown
    assert {*good.rglob("*"), *bad.rglob("*")} == before
