"""create_finetuning_data, and runs that train from its folder: the same bits as from the files."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("eager")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def files(tmp_path, labeled_texts) -> Path:
    """A folder with train.tsv (20 rows) and dev.tsv (7), and with SQuAD's two files."""
    for name, part in (("train", labeled_texts), ("dev", labeled_texts[3:10])):
        rows = "".join(f"{text}\t{label}\n" for text, label in part)
        (tmp_path / f"{name}.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
        paragraphs = []
        for number, (text, _) in enumerate(labeled_texts[: len(part)]):
            answer = {"text": text.split()[-1], "answer_start": text.rindex(" ") + 1}
            question = {"id": str(number), "question": "what was it?", "answers": [answer]}
            paragraphs.append({"context": text, "qas": [question]})
        squad = json.dumps({"data": [{"paragraphs": paragraphs}]})
        (tmp_path / f"{name}-v1.1.json").write_text(squad, encoding="utf-8")
    return tmp_path


@pytest.fixture
def data(files, work) -> dict[str, dict[str, object]]:
    """Flags of a task's data by the name of the task: those that decide the records."""
    vocabulary = {"vocab_file": work / "vocabulary" / "spiece.model"}
    lengths = {"max_seq_length": 32, "doc_stride": 8, "max_query_length": 16}
    return {
        "tsv": {**vocabulary, "max_seq_length": 16, "train_file": files / "train.tsv"},
        "squad1.1": {**vocabulary, **lengths, "data_dir": files, "only_windows_with_answer": True},
    }


@pytest.fixture
def train(program, work, files) -> Run:
    """(name of the run, **flags) -> a run of two updates, with dropout."""

    def run(name: str, **flags: object) -> tuple[int, str, str]:
        training = {
            "output_dir": files / name, "config_file": work / "config.json", "train_batch_size": 4,
            "learning_rate": 0.01, "num_train_steps": 2, "eval_steps": 1, "checkpoint_steps": 1,
            "distribution": "one_device", "fast": "off",
        }  # fmt: skip
        return program("run_finetuning", **{**training, **flags})

    return run


def bits(run: Path) -> dict[str, bytes]:
    """The weights of the best and the last model, and the results."""
    paths = [*run.glob("*model/*.data-*"), run / "results.json", *run.glob("outputs/*")]
    assert len(paths) == 5
    return {str(path.relative_to(run)): path.read_bytes() for path in paths}


def test_a_run_from_records_has_the_same_bits(files, data, program, train):
    """Of SQuAD, whose windows without the answer are left out."""
    data = data["squad1.1"]
    code, shown, errors = program(
        "create_finetuning_data", task="squad1.1", output_dir=files / "records", **data
    )
    assert code == 0, errors
    assert shown.startswith(f"Wrote {files}/records, 20 records of 20 examples, ")
    assert f"--train_records={files}/records --init_checkpoint=..." in shown
    code, _, errors = train("plain", task="squad1.1", **data)
    assert code == 0, errors
    (files / "train-v1.1.json").unlink()  # What is trained on may be elsewhere.
    code, shown, errors = train("stored", task="squad1.1", **data, train_records=files / "records")
    assert code == 0, errors
    assert bits(files / "stored") == bits(files / "plain")


def test_a_run_goes_on_from_records(files, data, program, train):
    """It began with the files, and has lost its end."""
    data, dev = data["tsv"], {"dev_file": files / "dev.tsv"}
    assert program("create_finetuning_data", task="tsv", output_dir=files / "r", **data)[0] == 0
    code, _, errors = train("run", task="tsv", **data, **dev)
    assert code == 0, errors
    expected = bits(files / "run")
    for path in (files / "run" / "checkpoints").glob("*2*"):
        path.unlink()
    shutil.rmtree(files / "run" / "last_model")
    given = {**data, "train_file": None, "train_records": files / "r", **dev}
    code, shown, errors = train("run", task="tsv", **given)
    assert code == 0 and "resuming at step 1" in shown, errors
    assert bits(files / "run") == expected


def test_records_are_made_once(files, data, program):
    given = {"task": "tsv", "output_dir": files / "records", **data["tsv"]}
    assert program("create_finetuning_data", **given)[0] == 0
    code, shown, _ = program("create_finetuning_data", **given)
    assert code == 0 and shown.startswith(f"Made before: {files}/records, 20 records of 20 ex")
    with open(files / "train.tsv", "a", encoding="utf-8") as file:
        file.write("one more\tb\n")
    code, _, errors = program("create_finetuning_data", **given)
    assert code == 2 and "was made with examples '" in errors
    code, shown, _ = program("create_finetuning_data", **given, overwrite=True)
    assert code == 0 and shown.startswith(f"Wrote {files}/records, 21 records of 21 examples")


@pytest.mark.parametrize(
    ("train_file", "message"),
    [
        ("train.tsv", "--train_file names others. Leave one of them out."),
        (None, "{files} holds no manifest.json"),
    ],
)
def test_records_that_do_not_fit_are_refused(train_file, message, files, data, train):
    given = {**data["tsv"], "train_records": files, "dev_file": files / "dev.tsv"}
    given["train_file"] = train_file and files / train_file
    code, _, errors = train("run", task="tsv", **given)
    assert code == 2 and message.format(files=files) in errors and "Traceback" not in errors
    assert not (files / "run").exists()


def test_examples_that_cannot_be_used(files, data, program):
    given = {**data["tsv"], "task": "regression", "output_dir": files / "records"}
    code, _, errors = program("create_finetuning_data", **given)
    assert code == 2 and "train.tsv:2: expected a number as label" in errors
    assert not (files / "records").exists()
