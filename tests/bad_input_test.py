"""Bad input, program by program: one clear error, exit code 2, and nothing half-written is left."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from albert_tf.checkpoints import bundle, native
from albert_tf.models import AlbertClassifier, AlbertPretrainer
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.quiet import NOISE
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from tests.conformance_cases import SMALLEST


@pytest.fixture(scope="module")
def good(tmp_path_factory, few_words, small_corpus) -> Path:
    """A folder with one good artifact of each kind."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "corpus.txt").write_text(small_corpus(60), encoding="utf-8")
    for name, size in (("vocabulary", 48), ("other_vocabulary", 50)):
        train_vocabulary(str(folder / "corpus.txt"), str(folder / name), size)
        tokenizer = load_tokenizer(str(folder / name / "spiece.model"))
        records = str(folder / name.replace("vocabulary", "records"))
        settings = PretrainingSettings(max_seq_length=32, dupe_factor=1)
        corpus = Corpus(str(folder / "corpus.txt"))
        create_pretraining_data(corpus, records, tokenizer, settings)
    rows = [f"{' '.join(few_words[i:])}\t{'ab'[i % 2]}" for i in range(8)]
    (folder / "train.tsv").write_text("\n".join(["text\tlabel", *rows, ""]), encoding="utf-8")
    SMALLEST.to_json_file(str(folder / "config.json"))
    tokenizer = load_tokenizer(str(folder / "vocabulary" / "spiece.model"))
    metadata = {"max_seq_length": 32, "vocab_fingerprint": tokenizer.fingerprint, "metrics": {}}
    for name, model in (
        ("pretrained", AlbertPretrainer(SMALLEST)),
        ("classifier", AlbertClassifier(SMALLEST, 2)),
    ):
        more = {"labels": ["a", "b"]} if name == "classifier" else {}
        vocab_file = str(folder / "vocabulary" / "spiece.model")
        settings = dataclasses.asdict(tokenizer.settings)
        native.save(model, str(folder / name), {**metadata, **more}, vocab_file, settings)
    return folder


@pytest.fixture(scope="module")
def bad(tmp_path_factory, good) -> Path:
    """A folder with every bad artifact that the cases below name."""
    bad = tmp_path_factory.mktemp("bad")
    (bad / "empty.txt").write_bytes(b"")
    (bad / "blank.txt").write_text("\n \n\n")
    (bad / "words.txt").write_text("one\n\ntwo\n\nthree\n")
    (bad / "utf16.txt").write_bytes("A sentence.\n".encode("utf-16"))
    (bad / "broken.txt.gz").write_bytes(b"\x1f\x8b\x08 this is no gzip")
    (bad / "empty.tsv").write_bytes(b"")
    (bad / "header.tsv").write_text("text\tlabel\n")
    (bad / "columns.tsv").write_text("text\tlabel\none\ta\ntwo\n")
    (bad / "names.tsv").write_text("sentence\tlabel\none\ta\n")
    scores = [f"some text\t{i / 10}" for i in range(24)]
    (bad / "scores.tsv").write_text("\n".join(["text\tlabel", *scores, ""]))
    (bad / "text.json").write_text("no JSON")
    config = json.loads((good / "config.json").read_text())
    for name, change in (
        ("vocabulary", {"vocab_size": 47}),
        ("short", {"max_position_embeddings": 16}),
    ):
        (bad / f"{name}.json").write_text(json.dumps({**config, **change}))
    (bad / "spiece.model").write_text("no SentencePiece model")

    cut = bad / "cut_records"
    shutil.copytree(good / "records", cut)
    shard = next(cut.glob("*.tfrecord"))
    content = shard.read_bytes()
    shard.write_bytes(content[:-20])
    flipped = bad / "flipped_records"
    shutil.copytree(good / "records", flipped)
    shard = next(flipped.glob("*.tfrecord"))
    shard.write_bytes(content[:100] + bytes([content[100] ^ 255]) + content[101:])
    (bad / "no_manifest").mkdir()

    values = tf.train.load_checkpoint(str(good / "pretrained" / "model.ckpt"))
    arrays = {name: values.get_tensor(name) for name in values.get_variable_to_shape_map()}
    for name, change in (
        ("lacking", {"encoder/pooler/bias": None}),
        ("misshapen", {"encoder/pooler/bias": arrays["encoder/pooler/bias"][:3]}),
    ):
        shutil.copytree(good / "pretrained", bad / name)
        changed = {key: value for key, value in {**arrays, **change}.items() if value is not None}
        bundle.write(str(bad / name / "model.ckpt"), changed)
        metadata = json.loads((bad / name / "model.json").read_text())
        del metadata["sha256"]  # What else is wrong is seen without hashes, too.
        (bad / name / "model.json").write_text(json.dumps(metadata))
    shutil.copytree(good / "pretrained", bad / "cut_weights")
    data = next((bad / "cut_weights").glob("model.ckpt.data*"))
    data.write_bytes(data.read_bytes()[:100])
    shutil.copytree(good / "pretrained", bad / "no_vocabulary")
    (bad / "no_vocabulary" / "spiece.model").unlink()
    (bad / "busy").mkdir()
    (bad / "busy" / "mine.txt").write_text("my own file")
    return bad


@dataclasses.dataclass(frozen=True)
class Program:
    """A binary: module, and arguments with which it would do its work."""

    module: str
    arguments: dict[str, str | None]


TRAINING = {"output_dir": "{bad}/out", "train_batch_size": "4", "distribution": "one_device"}
VOCABULARY = Program(
    "data_pipeline.train_vocabulary",
    {"input": "{good}/corpus.txt", "output_dir": "{bad}/out", "vocab_size": "48"},
)
RECORDS = Program(
    "data_pipeline.create_pretraining_data",
    {
        "input": "{good}/corpus.txt",
        "output_dir": "{bad}/out",
        "vocab_file": "{good}/vocabulary/spiece.model",
        "max_seq_length": "32",
    },
)
INSPECT = Program("data_pipeline.inspect_records", {"data": "{good}/records"})
ADOPT = Program(
    "data_pipeline.adopt_records",
    {"data": "{bad}/no_manifest", "vocab_file": "{good}/vocabulary/spiece.model"},
)
PRETRAINING = Program(
    "albert_tf.run_pretraining",
    {
        **TRAINING,
        "train_data": "{good}/records",
        "config_file": "{good}/config.json",
        "num_train_steps": "40",
        "num_warmup_steps": "1",
    },
)
CLASSIFIER = Program(
    "albert_tf.run_finetuning",
    {
        **TRAINING,
        "task": "tsv",
        "train_file": "{good}/train.tsv",
        "dev_file": "{good}/train.tsv",
        "init_checkpoint": "{good}/pretrained",
        "max_seq_length": "32",
    },
)
EXPORT = Program(
    "export.run_export",
    {"model_dir": "{good}/pretrained", "output_dir": "{bad}/out", "task": "masked_lm"},
)
DESCRIBE = Program("albert_tf.describe", {})
CONVERT = Program("albert_tf.convert", {"input": "{good}/pretrained", "format": "google"})
PREDICT = Program("export.predict", {"model": "{bad}/nowhere", "text": "A text."})
SERVER = Program(
    "export.server.__main__", {"model": "m={bad}/nowhere", "rest_port": "0", "grpc_port": "0"}
)

# Program, arguments that differ, what the message says.
CASES = [
    (VOCABULARY, {"input": "{bad}/nowhere.txt"}, "No file matches '{bad}/nowhere.txt'"),
    (VOCABULARY, {"input": "{bad}"}, "{bad} is a folder; give the files in it"),
    (VOCABULARY, {"input": "{bad}/empty.txt"}, "{bad}/empty.txt holds no text"),
    (VOCABULARY, {"input": "{bad}/utf16.txt"}, "{bad}/utf16.txt is UTF-16; convert it"),
    (VOCABULARY, {"input": "{bad}/broken.txt.gz"}, "{bad}/broken.txt.gz is not a complete gzip"),
    (VOCABULARY, {"vocab_size": "9000"}, "--vocab_size=9000 is too large"),
    (VOCABULARY, {"vocab_size": "x"}, "--vocab_size=x"),
    (VOCABULARY, {"output_dir": "{good}/vocabulary"}, "exists already; choose another folder"),
    (RECORDS, {"input": "{bad}/nowhere.txt"}, "No file matches '{bad}/nowhere.txt'"),
    (RECORDS, {"input": "{bad}/empty.txt"}, "No record could be made"),
    (RECORDS, {"input": "{bad}/blank.txt"}, "blank.txt: file without text"),
    (RECORDS, {"input": "{bad}/words.txt"}, "expected documents of at least two words"),
    (RECORDS, {"input": "{bad}/utf16.txt"}, "{bad}/utf16.txt is UTF-16; convert it"),
    (RECORDS, {"vocab_file": "{bad}/nowhere.model"}, "{bad}/nowhere.model does not exist"),
    (RECORDS, {"vocab_file": "{bad}/spiece.model"}, "spiece.model is not a SentencePiece model"),
    (RECORDS, {"max_seq_length": "4"}, "--max_seq_length"),
    (RECORDS, {"masked_lm_prob": "1.5"}, "--masked_lm_prob"),
    (RECORDS, {"sentence_objective": "mlm"}, "should be one of <sop|nsp|none>"),
    (RECORDS, {"output_dir": "{good}/records"}, "--overwrite"),
    (RECORDS, {"output_dir": "{bad}/empty.txt"}, "{bad}/empty.txt is a file"),
    (RECORDS, {"masking": "none"}, "should be one of <static|dynamic>"),
    (RECORDS, {"shard_mb": "-1"}, "--shard_mb"),
    (RECORDS, {"num_processes": "2", "input": "{bad}/utf16.txt"}, "convert it to UTF-8"),
    (RECORDS, {"runner": "NoRunner"}, "--runner"),
    (ADOPT, {"data": "{bad}/nowhere"}, "holds no file named like"),
    (ADOPT, {"data": "{good}/records"}, "already holds data"),
    (ADOPT, {"vocab_file": "{bad}/nowhere.model"}, "{bad}/nowhere.model does not exist"),
    (INSPECT, {"data": "{bad}/nowhere"}, "{bad}/nowhere does not exist"),
    (INSPECT, {"data": "{bad}/no_manifest"}, "{bad}/no_manifest holds no manifest.json"),
    (INSPECT, {"data": "{bad}/cut_records"}, ".tfrecord"),
    (INSPECT, {"data": "{bad}/flipped_records"}, ".tfrecord"),
    (PRETRAINING, {"train_data": None}, "--train_data is missing"),
    (PRETRAINING, {"train_data": "{bad}/nowhere"}, "{bad}/nowhere does not exist"),
    (PRETRAINING, {"train_data": "{bad}/no_manifest"}, "holds no manifest.json"),
    (PRETRAINING, {"train_data": "{bad}/cut_records"}, ".tfrecord"),
    (PRETRAINING, {"train_data": "{bad}/flipped_records"}, "its content differs from manifest"),
    (PRETRAINING, {"eval_data": "{good}/other_records"}, "has 50 pieces, the model's"),
    (PRETRAINING, {"config_file": "{bad}/nowhere.json"}, "{bad}/nowhere.json does not exist"),
    (PRETRAINING, {"config_file": "{bad}/text.json"}, "{bad}/text.json"),
    (PRETRAINING, {"config_file": "{bad}/vocabulary.json"}, "48 pieces, the model's vocab_size is"),
    (PRETRAINING, {"config_file": "{bad}/short.json"}, "longer than the model's 16 positions"),
    (PRETRAINING, {"config_file": None}, "no architecture is given. Pass --preset"),
    (PRETRAINING, {"preset": "albert-tiny"}, "--preset and --config_file are both given"),
    (PRETRAINING, {"config_file": None, "preset": "albert-huge"}, "'albert-huge' is unknown"),
    (PRETRAINING, {"init_checkpoint": "{bad}/nowhere"}, "checkpoint {bad}/nowhere does not exist"),
    (PRETRAINING, {"init_checkpoint": "{bad}/lacking"}, "missing: encoder/pooler/bias"),
    (PRETRAINING, {"init_checkpoint": "{bad}/misshapen"}, "misshapen: encoder/pooler/bias"),
    (PRETRAINING, {"init_checkpoint": "{bad}/cut_weights"}, "{bad}/cut_weights/model.ckpt"),
    (PRETRAINING, {"distribution": "tpu"}, "--distribution=tpu needs --tpu"),
    (PRETRAINING, {"distribution": "tpu", "tpu": "grpc://127.0.0.1:9"}, "--tpu=grpc://127.0.0.1:9"),
    (PRETRAINING, {"config_file": "{bad}"}, "--config_file={bad}: config file {bad} is a folder"),
    (PRETRAINING, {"output_dir": None}, "--output_dir is missing: Folder of the run"),
    (PRETRAINING, {"output_dir": "/proc/x"}, "--output_dir=/proc/x: /proc/x: No such file"),
    (PRETRAINING, {"train_batch_size": "1000"}, "--train_batch_size=1000 is more than the"),
    (PRETRAINING, {"flagfile": "{bad}/words.txt"}, "{bad}/words.txt:1: 'one' is not a flag"),
    (PRETRAINING, {"output_dir": "{bad}/busy"}, "{bad}/busy is not empty and holds no run"),
    (PRETRAINING, {"output_dir": "{bad}/empty.txt"}, "{bad}/empty.txt is a file"),
    (PRETRAINING, {"gradient_accumulation_steps": "3"}, "--train_batch_size=4 is not divisible by"),
    (PRETRAINING, {"mask_schedule": "0.3@5"}, "--mask_schedule=0.3@5: expected VALUE@STEP, or"),
    (
        PRETRAINING,
        {"batch_size_schedule": "8@0"},
        "--train_batch_size=4 and --batch_size_schedule=",
    ),
    (PRETRAINING, {"layerwise_learning_rate_decay": "0.9"}, "1 layers share one set of weights"),
    (PRETRAINING, {"eval_data": "{good}/records,{good}/records"}, "two folders with the sente"),
    (PRETRAINING, {"mode": "continuous_eval", "eval_data": "{good}/records"}, "out holds no run"),
    (PRETRAINING, {"mode": "continuous_eval"}, "--eval_data is missing"),
    (PRETRAINING, {"mode": "eval"}, "--eval_data is missing"),
    (PRETRAINING, {"mode": "eval", "eval_data": "{good}/records"}, "out has no finished model"),
    (CLASSIFIER, {"train_file": None}, "--train_file is missing"),
    (CLASSIFIER, {"train_file": "{bad}"}, "--train_file={bad}: {bad} is a folder"),
    (CLASSIFIER, {"train_file": "{bad}/scores.tsv"}, "the labels are 24 different numbers"),
    (CLASSIFIER, {"train_batch_size": "5000"}, "--train_batch_size=5000 is more than the 8"),
    (CLASSIFIER, {"train_file": "{bad}/nowhere.tsv"}, "{bad}/nowhere.tsv does not exist"),
    (CLASSIFIER, {"train_file": "{bad}/empty.tsv"}, "{bad}/empty.tsv"),
    (CLASSIFIER, {"train_file": "{bad}/header.tsv"}, "{bad}/header.tsv holds a header row but no"),
    (CLASSIFIER, {"train_file": "{bad}/columns.tsv"}, "{bad}/columns.tsv:3: expected 2 tab"),
    (CLASSIFIER, {"train_file": "{bad}/names.tsv"}, "no column 'text'"),
    (CLASSIFIER, {"vocab_file": "{good}/other_vocabulary/spiece.model"}, "has 50 pieces"),
    (CLASSIFIER, {"init_checkpoint": None, "config_file": "{good}/config.json"}, "--vocab_file"),
    (CLASSIFIER, {"init_checkpoint": "bert-base"}, "an architecture without weights to download"),
    (CLASSIFIER, {"init_checkpoint": "albert-base-v3"}, "Did you mean 'albert-base-v2'?"),
    (CLASSIFIER, {"init_checkpoint": "{bad}/lacking"}, "missing: encoder/pooler/bias"),
    (CLASSIFIER, {"init_checkpoint": "{bad}/misshapen"}, "misshapen: encoder/pooler/bias"),
    (CLASSIFIER, {"init_checkpoint": "{bad}/no_vocabulary"}, "spiece.model is missing"),
    (CLASSIFIER, {"mode": "predict"}, "{good}/pretrained holds a model for pretraining, and --"),
    (CLASSIFIER, {"mode": "predict", "init_checkpoint": None}, "{bad}/out/model is not a model"),
    (DESCRIBE, {"config_file": "{bad}"}, "--config_file={bad}: config file {bad} is a folder"),
    (CONVERT, {"output": "/proc/x/y"}, "--output=/proc/x/y: /proc/x"),
    (EXPORT, {"model_dir": "{bad}/nowhere"}, "{bad}/nowhere is not a model folder"),
    (EXPORT, {"model_dir": "{bad}/lacking"}, "missing: encoder/pooler/bias"),
    (EXPORT, {"model_dir": "{bad}/cut_weights"}, "{bad}/cut_weights/model.ckpt"),
    (EXPORT, {"model_dir": "{bad}/no_vocabulary"}, "spiece.model is missing"),
    (EXPORT, {"task": "classifier"}, "classifier"),
    (EXPORT, {"max_seq_length": "64"}, "32"),
    (PREDICT, {}, "{bad}/nowhere"),
    (PREDICT, {"model": "http://127.0.0.1:9/v1/models/m"}, "http://127.0.0.1:9/v1/models/m"),
    (SERVER, {}, "{bad}/nowhere"),
    (SERVER, {"model": "nowhere"}, "NAME=PATH"),
]


def tree(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def case_id(value: object) -> str | None:
    if isinstance(value, Program):
        return value.module.split(".")[1]
    if isinstance(value, dict):
        return ",".join(f"{name}={str(given).split('/')[-1]}" for name, given in value.items())
    return ""


@pytest.mark.parametrize(("program", "changes", "message"), CASES, ids=case_id)
def test_bad_input(program, changes, message, good, bad, run_program, capfd, foreign_lines):
    folders = {"good": good, "bad": bad}
    arguments = {**program.arguments, **changes}
    argv = [
        f"--{name}={value.format(**folders)}"
        for name, value in arguments.items()
        if value is not None
    ]
    before = tree(good) | tree(bad)
    with pytest.raises(SystemExit) as exit_info:
        run_program(program.module, *argv)
    shown = capfd.readouterr().err
    assert exit_info.value.code == 2, shown
    progress, _, error = shown.partition(": error: ")
    assert error and "Traceback" not in shown
    # In this process native code writes past the filter that the programs have.
    lines = progress.encode("utf-8").split(b"\n")[:-1]
    seen = b"\n".join(line for line in lines if not NOISE.match(line)).decode("utf-8")
    assert not foreign_lines(seen)
    assert message.format(**folders) in shown
    assert tree(good) | tree(bad) == before
