"""Bad files and flags of fine-tuning tasks: one sentence, exit code 2, nothing half-written."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.benchmarks import TASKS
from albert_tf.finetuning.spec import DataSource
from albert_tf.models import AlbertClassifier, AlbertTokenClassifier
from data_pipeline.command_line.native_notes import is_noise
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

PROGRAM = "albert_tf.run_finetuning"


def rows(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


OPTIONS = {"choice1": "He ran.", "choice2": "He sat.", "question": "cause"}
COPA = {"premise": "The cat fled.", **OPTIONS, "label": 0, "idx": 0}
CB = {"premise": "It rains.", "hypothesis": "It is wet.", "label": "neutral", "idx": 0}
BOOLQ = {"question": "is it", "passage": "It is.", "label": True, "idx": 0}
RACE = {"article": "A cat.", "questions": ["A _?"], "options": [["a", "b", "c", "d"]]}
RACE |= {"answers": ["A"]}
# Task -> folder, names of the files of train and dev, and a content that is right.
GOOD = {
    "cola": ("CoLA", "{}.tsv", rows("s\t1\t\tA cat sat.", "s\t0\t*\tCat a sat.")),
    "sst-2": ("SST-2", "{}.tsv", rows("sentence\tlabel", "good\t1", "bad\t0")),
    "sts-b": (
        *("STS-B", "{}.tsv"),
        rows("index\tsentence1\tsentence2\tscore", "0\ta\tb\t2.5", "1\ta\ta\t5"),
    ),
    "qnli": (
        *("QNLI", "{}.tsv"),
        rows("index\tquestion\tsentence\tlabel", "0\ta\tb\tentailment"),
    ),
    "boolq": ("BoolQ", "{}.jsonl", rows(json.dumps(BOOLQ))),
    "cb": ("CB", "{}.jsonl", rows(json.dumps(CB))),
    "copa": ("COPA", "{}.jsonl", rows(json.dumps(COPA))),
    "race": ("", "{}/middle/1.txt", json.dumps(RACE)),
    "tagging": ("", "{}.conll", rows("cat\tB-X", "sat\tO", "", "mat\tO")),
    "tsv": ("", "{}.tsv", rows("text\tlabel", "good\ta", "bad\tb")),
    "regression": ("", "{}.tsv", rows("text\tlabel", "good\t1.5", "bad\t2")),
}
# Task, what is wrong, the split whose file has it, the content (None: no file), the message.
FILES = [
    ("cola", "no column", "train", rows("s\t1\t\tx", "s\t1"), "train.tsv:2: expected at least 4"),
    ("cola", "label", "train", rows("s\t2\t\tx"), "train.tsv:1: the label (column 'label') is '2'"),
    ("sst-2", "no header", "train", rows("good\t1"), "train.tsv:1: no column 'sentence'"),
    ("sst-2", "label", "dev", rows("sentence\tlabel", "x\tgood"), "dev.tsv:2: the label (column"),
    (
        *("qnli", "one id twice", "dev"),
        rows("index\tquestion\tsentence\tlabel", *["7\ta\tb\tentailment"] * 2),
        "dev.tsv:3: the id '7' is that of {dir}/QNLI/dev.tsv:2, too; answers are named by id.",
    ),
    (
        *("cb", "one id twice", "train", rows(*[json.dumps(CB)] * 2)),
        "train.jsonl:2: the id '0' is that of {dir}/CB/train.jsonl:1, too",
    ),
    (
        *("race", "one id twice", "dev", json.dumps({**RACE, "id": "high1.txt:1"})),
        "dev/high/1.txt:1: the id 'high1.txt:1-0' is that of {dir}/dev/middle/1.txt:1, too",
    ),
    ("sst-2", "empty", "train", b"", "train.tsv:1: no column 'sentence'"),
    ("sst-2", "header alone", "dev", rows("sentence\tlabel"), "dev.tsv holds no example"),
    ("sst-2", "no dev", "dev", None, "none of the files SST-2/dev.tsv, dev.tsv"),
    ("sst-2", "UTF-16", "train", "sentence\tlabel\n".encode("utf-16"), ":1: the text is not UTF-8"),
    (
        *("sts-b", "NaN score", "dev"),
        rows("index\tsentence1\tsentence2\tscore", "0\ta\tb\tnan"),
        "dev.tsv:2: expected a number as label; found 'nan'",
    ),
    (
        *("qnli", "label", "train"),
        rows("index\tquestion\tsentence\tlabel", "0\ta\tb\tEntailment"),
        "train.tsv:2: the label (column 'label') is 'Entailment'",
    ),
    ("boolq", "no JSON", "train", rows("no JSON"), "train.jsonl:1: expected one JSON object"),
    (
        *("boolq", "no field", "train", rows(json.dumps({"question": "a", "label": True}))),
        "train.jsonl:1: expected a field 'passage'",
    ),
    ("cb", "empty", "dev", b"", "{dir}/CB/{split}.jsonl"),
    (
        *("cb", "label", "dev", rows(json.dumps({**CB, "label": "maybe"}))),
        "{split}.jsonl:1:",
    ),
    ("copa", "label", "train", rows(json.dumps({**COPA, "label": 2})), "train.jsonl:1:"),
    ("race", "answer", "dev", json.dumps({**RACE, "answers": ["E"]}), "dev/middle/1.txt:1"),
    ("race", "no dev", "dev", None, "dev"),
    ("tagging", "columns", "train", rows("cat\tO", "sat\tO\tO"), ":2: expected 2 columns as in"),
    ("tagging", "no tags", "train", rows("cat", "sat"), "train.conll:1: expected a word and its"),
    ("tagging", "one tag", "train", rows("cat\tO", "sat\tO"), "every word has the tag 'O'"),
    ("tagging", "tag", "dev", rows("cat\tB-X", "sat\tB-Y"), "dev.conll:2: the tag 'B-Y' is none"),
    ("tagging", "empty", "dev", b"", "dev.conll holds no word"),
    ("tagging", "no dev", "dev", None, "none of the files dev.conll, dev.txt"),
    ("tsv", "empty", "train", b"", "train.tsv:1: no column 'text'"),
    ("tsv", "no label", "train", rows("text\tlabel", "x\ta", "y\t"), ":3: the label is empty"),
    ("tsv", "columns", "train", rows("text\tlabel", 'x "y\ta', 'z"'), ":3: expected 2 tab"),
    ("tsv", "one label", "train", rows("text\tlabel", "x\ta"), "two are needed"),
    (
        *("tsv", "label", "dev", rows("text\tlabel", "x\ta", "y\tc")),
        "dev.tsv:3: found the label 'c', not one of a, b",
    ),
    ("tsv", "no dev", "dev", None, "dev.tsv does not exist"),
    ("regression", "NaN score", "train", rows("text\tlabel", "x\tNaN"), "train.tsv:2: expected a"),
    ("regression", "name", "dev", rows("text\tlabel", "x\tgood"), "found 'good'"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory, few_words) -> Path:
    """A folder with vocab.txt, config.json, and a fine-tuned model for classes and one for tags."""
    folder = tmp_path_factory.mktemp("models")
    pieces = [*WordPieceTokenizer.SPECIAL_PIECES, *dict.fromkeys(few_words)]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    config = AlbertConfig(
        vocab_size=len(pieces),
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    config.to_json_file(str(folder / "config.json"))
    tokenizer = load_tokenizer(str(folder / "vocab.txt"))
    for task, model, labels in (
        ("tsv", AlbertClassifier(config, 2), ["a", "b"]),
        ("tagging", AlbertTokenClassifier(config, 2), ["O", "B-X"]),
    ):
        metadata = {
            "finetuned_on": task,
            "labels": labels,
            "max_seq_length": 32,
            "vocab_fingerprint": tokenizer.fingerprint,
            "metrics": {},
        }
        settings = dataclasses.asdict(tokenizer.settings)
        native.save(model, str(folder / task), metadata, tokenizer.vocab_file, settings)
    return folder


@pytest.fixture
def error_of(run_program, capfd, tmp_path, models, foreign_lines):
    """Flags -> the error of the program, after which no file is new."""

    def find(**flags: object) -> str:
        values = {"output_dir": tmp_path / "out", "distribution": "one_device", **flags}
        before = {*tmp_path.rglob("*"), *models.rglob("*")}
        with pytest.raises(SystemExit) as end:
            run_program(PROGRAM, *(f"--{name}={value}" for name, value in values.items()))
        shown = capfd.readouterr().err
        assert end.value.code == 2 and "Traceback" not in shown, shown
        notes, _, error = shown.partition("run_finetuning.py: error: ")
        lines = [line for line in notes.encode().split(b"\n")[:-1] if not is_noise(line)]
        assert not foreign_lines(b"\n".join(lines).decode())
        assert {*tmp_path.rglob("*"), *models.rglob("*")} == before
        assert error.count("\n") == 1
        return error

    return find


def write_files(folder: Path, task: str, **changed: str | bytes | None) -> dict[str, Path]:
    """Writes a task's files of train and dev; returns the flags that name them."""
    own, name, good = GOOD[task]
    found = {}
    for split in ("train", "dev"):
        content = changed.get(split, good)
        path = folder / "data" / own / name.format(split)
        path.parent.mkdir(parents=True, exist_ok=True)
        if task == "race":
            (folder / "data" / split / "high").mkdir(parents=True)
            (folder / "data" / split / "high" / "1.txt").write_text(good)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        found[f"{split}_file"] = path
    if task in ("tsv", "regression"):
        return found
    return {"data_dir": folder / "data"}


@pytest.mark.parametrize(
    ("task", "split", "content", "message"),
    [(task, *others) for task, _, *others in FILES],
    ids=[f"{task}-{what}" for task, what, *_ in FILES],
)
def test_bad_files(task, split, content, message, error_of, models, tmp_path):
    error = error_of(
        task=task,
        config_file=models / "config.json",
        vocab_file=models / "vocab.txt",
        max_seq_length=32,
        **write_files(tmp_path, task, **{split: content}),
    )
    assert message.format(dir=tmp_path / "data", split=split) in error


@pytest.mark.parametrize("task", GOOD)
def test_marks_line_ends_and_quotes_change_nothing(task, tmp_path):
    """A byte order mark, Windows line ends, no end of the last line; quotes are letters."""
    good = GOOD[task][2]
    if "\t" in good:
        good = good.replace("bad", '"bad').replace("cat", 'c"at').replace("\ta\t", '\t"a\t')
    other = b"\xef\xbb\xbf" + good.rstrip("\n").replace("\n", "\r\n").encode()
    splits = []
    for folder, content in ((tmp_path / "plain", good), (tmp_path / "windows", other)):
        files = write_files(folder, task, train=content)
        single = {"train": str(files["train_file"])} if "train_file" in files else {}
        source = DataSource(str(files.get("data_dir", "")), single)
        splits.append(TASKS[task].read(source, "train"))
    assert splits[0].sha256() == splits[1].sha256()


# Task, flags, the message.
FLAGS = [
    ("tagging", {"data_dir": None}, "--data_dir is missing: .*tagging, or --train_file"),
    ("tagging", {"data_dir": "{data}/nowhere"}, "nowhere has none of the files train.conll"),
    ("tagging", {"label_column": "x"}, "--label_column is for files of your own"),
    ("sst-2", {"data_dir": None}, "--data_dir is missing: the folder with the data of sst-2"),
    ("sst-2", {"train_file": "x"}, "--task=sst-2 reads the files of its benchmark in --data_dir"),
    ("tsv", {"dev_file": None}, "--dev_file is missing, and --task=tsv needs it"),
    ("tsv", {"label_column": "score"}, "train.tsv:1: no column 'score'"),
    ("tsv", {"max_seq_length": 64}, "longer than the model's 32 positions"),
    ("ax", {}, "--task=ax has nothing to be trained on"),
    ("nonsense", {}, "--task=nonsense"),
]


@pytest.mark.parametrize(("task", "changes", "message"), FLAGS)
def test_bad_flags(task, changes, message, error_of, models, tmp_path):
    files = write_files(tmp_path, task) if task in GOOD else {"data_dir": tmp_path}
    flags = {"max_seq_length": 32, **files, **changes}
    given = {
        name: str(value).format(data=tmp_path) for name, value in flags.items() if value is not None
    }
    start = {"config_file": models / "config.json", "vocab_file": models / "vocab.txt"}
    error = error_of(task=task, **start, **given)
    assert re.search(message, error), error


@pytest.mark.parametrize(
    ("task", "model", "message"),
    [
        ("tagging", "tsv", "holds a model for tsv, and --task=tagging needs one for"),
        ("tsv", "tagging", "holds a model for tagging, and --task=tsv needs one for"),
        ("sst-2", "tsv", "with the classes a, b; those of --task=sst-2 are 0, 1"),
        ("race", "tagging", "holds a model for tagging, and --task=race needs one for"),
        ("tsv", "nowhere", "nowhere is not a model folder"),
    ],
)
@pytest.mark.parametrize("mode", ["eval", "predict"])
def test_a_model_of_another_task(mode, task, model, message, error_of, models, tmp_path):
    files = write_files(tmp_path, task)
    error = error_of(mode=mode, task=task, init_checkpoint=models / model, **files)
    assert message in error


def test_files_that_cannot_be_predicted(error_of, models, tmp_path):
    classifier = models / "tsv"
    new = tmp_path / "new.tsv"
    new.write_text("sentence\nx\n")
    flags = {"mode": "predict", "init_checkpoint": classifier}
    error = error_of(**flags, task="tsv")
    assert "--data_dir" not in error and "--predict_file is missing" in error
    error = error_of(**flags, task="tsv", predict_file=new)
    assert f"{new}:1: no column 'text'" in error
    error = error_of(**flags, task="tsv", predict_file=tmp_path / "nowhere.tsv")
    assert "nowhere.tsv does not exist" in error
    flags["init_checkpoint"] = models / "tagging"
    new.write_text("cat\nsat\tO\n")
    error = error_of(**flags, task="tagging", predict_file=new)
    assert f"{new}:2: expected 1 column as in line 1, found 2" in error
