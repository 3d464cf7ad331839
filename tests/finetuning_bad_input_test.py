"""Bad files and flags of fine-tuning tasks: one sentence, exit code 2, nothing half-written."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from albert_tf.checkpoints import native
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.models import AlbertClassifier, AlbertTokenClassifier
from data_pipeline.quiet import NOISE
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.finetuning_files import (
    ASKED,
    CB,
    GOOD,
    json_rows,
    lengths_of,
    rows,
    squad,
    write_files,
    write_start,
)

PROGRAM = "albert_tf.run_finetuning"
BLANK = {**ASKED, "answers": [{"text": "\x01", "answer_start": 8}]}

# Task, what is wrong, the split whose file has it, the content, the message. What one reader says
# of one line is in `tests/data_pipeline/finetuning`.
FILES = [
    ("sst-2", "no header", "train", rows("good\t1"), "train.tsv:1: no column 'sentence'"),
    (
        *("qnli", "one id twice", "dev"),
        rows("index\tquestion\tsentence\tlabel", *["7\ta\tb\tentailment"] * 2),
        "dev.tsv:3: the id '7' is also that of {dir}/QNLI/dev.tsv:2; answers are identified by",
    ),
    (
        *("cb", "one id twice", "train", json_rows(CB, CB)),
        "train.jsonl:2: the id '0' is also that of {dir}/CB/train.jsonl:1",
    ),
    ("sst-2", "UTF-16", "train", "sentence".encode("utf-16"), "train.tsv:1: the text is not UTF-8"),
    (
        *("tsv", "label", "dev", rows("text\tlabel", "x\ta", "y\tc")),
        "dev.tsv:3: found the label 'c', not one of a, b",
    ),
    (  # The id of a second question is in line 20.
        *("squad1.1", "answer of no piece", "train"),
        squad(ASKED, {**BLANK, "id": "q2"}, context="the cat \x01 sat"),
        "{dir}/train-v1.1.json:20: question q2: expected an answer of at least one piece; nothing "
        "is left of '\\x01' after normalization.",
    ),
    (
        *("squad2.0", "no answers", "dev", squad({**ASKED, "answers": []})),
        "{dir}/dev-v2.0.json: no question has an answer or is marked is_impossible.",
    ),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory, few_words) -> Path:
    """A folder with vocab.txt, config.json, and a fine-tuned model for classes and one for tags."""
    folder = tmp_path_factory.mktemp("models")
    config = write_start(folder, few_words)
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
        lines = [line for line in notes.encode().split(b"\n")[:-1] if not NOISE.match(line)]
        assert not foreign_lines(b"\n".join(lines).decode())
        assert {*tmp_path.rglob("*"), *models.rglob("*")} == before
        assert error.count("\n") == 1
        return error

    return find


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
        **lengths_of(task),
        **write_files(tmp_path, task, **{split: content}),
    )
    assert message.format(dir=tmp_path / "data") in error


@pytest.mark.parametrize("task", GOOD)
def test_marks_line_ends_and_quotes_change_nothing(task, tmp_path):
    """A byte order mark, Windows line ends, no end of the last line; quotes are letters."""
    good = GOOD[task][2]
    if "\t" in good:
        good = re.sub(r"\bcat\b", 'c"at', good.replace("bad", '"bad').replace("\ta\t", '\t"a\t'))
    other = b"\xef\xbb\xbf" + good.rstrip("\n").replace("\n", "\r\n").encode()
    splits = []
    for folder, content in ((tmp_path / "plain", good), (tmp_path / "windows", other)):
        files = write_files(folder, task, train=content)
        single = {"train": str(files["train_file"])} if "train_file" in files else {}
        source = TaskData(str(files.get("data_dir", "")), single)
        splits.append(TASKS[task].read(source, "train"))
    assert splits[0].sha256() == splits[1].sha256()


# Task, flags, the message.
FLAGS = [
    ("tagging", {"data_dir": None}, "--data_dir is missing: .*tagging, or --train_file"),
    ("tagging", {"data_dir": "{data}/nowhere"}, "nowhere has none of the files train.conll"),
    ("sst-2", {"data_dir": None}, "--data_dir is missing: the folder with the data of sst-2"),
    ("sst-2", {"train_file": "x"}, "--task=sst-2 reads the files of its benchmark in --data_dir"),
    ("tsv", {"label_column": "score"}, "train.tsv:1: no column 'score'"),
    ("ax", {}, "--task=ax has no training examples"),
    ("cola", {"multi_label": True}, "--multi_label does not apply to --task=cola.*--task=tsv"),
    ("regression", {"threshold": 0.3}, "--threshold does not apply to --task=regression"),
    ("tsv", {"threshold": 0.3}, "--threshold=0.3 applies only to --multi_label. Give"),
    ("tsv", {"label_separator": ";"}, "--label_separator=; applies only to --multi_label"),
    (
        "tsv",
        {"multi_label": True, "label_separator": "\t"},
        r"--label_separator='\\t' cannot stand",
    ),
    ("tsv", {"multi_label": True, "threshold": 0}, "expected a finite number above 0, up to 1"),
    ("tsv", {"pair_column": "label"}, "--label_column=label is also the --pair_column"),
    ("tsv", {"label_column": "text"}, "--label_column=text is also the --text_column"),
    ("tsv", {"num_train_epochs": 3, "num_train_steps": 5}, "num_train_steps=5 both set the"),
    ("tsv", {"predict_file": "/nowhere"}, "--predict_file=/nowhere does not exist"),
    ("tsv", {"splits": "nope"}, "--splits=nope is for --mode=eval or --mode=predict"),
    ("tsv", {"only_windows_with_answer": True}, "--only_windows_with_answer does not apply"),
    ("tsv", {"distribution": "multi_worker_mirrored"}, "_mirrored takes its workers from"),
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
        ("tagging", "tsv", "holds a model for tsv, and --task=tagging needs a fine-tuned one"),
        ("tsv", "tagging", "holds a model for tagging, and --task=tsv needs a fine-tuned one"),
        ("sst-2", "tsv", "with the classes a, b, and --task=sst-2 has 0, 1"),
        ("race", "tagging", "holds a model for tagging, and --task=race needs a fine-tuned one"),
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
