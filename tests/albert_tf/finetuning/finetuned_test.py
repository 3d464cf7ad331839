"""A fine-tuned model: loaded for its task alone, scored, used for answers."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.finetuning.finetuned import evaluate, load_finetuned, predict
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS, Classes, own_classes
from albert_tf.finetuning.tasks.texts import ClassificationTask
from albert_tf.metrics import SCORERS

LABELS = ("long", "short")
SETTINGS = {"lower": True, "rules": "google"}
TASK = ClassificationTask("mine", None, LABELS, SCORERS["cola"])


@pytest.fixture
def folder(small_model, vocab_file, tmp_path, one_device):
    with one_device.strategy.scope():
        model = TASK.new_model(small_model.config(48, 32, "test"), LABELS, 0.1, packed=True)
    metadata = {"finetuned_on": "mine", "labels": list(LABELS), "max_seq_length": 16}
    native.save(model, str(tmp_path / "model"), metadata, vocab_file, SETTINGS)
    return str(tmp_path / "model")


def test_scores_and_answers(folder, small_splits, one_device, tmp_path, capsys):
    found = load_finetuned(folder, TASK, one_device)
    assert found.labels == LABELS and found.lengths.max_seq_length == 16
    assert found.lengths.doc_stride == 128  # Not in the folder.
    data = TaskData(splits=small_splits)
    scores = evaluate(found, data, ["dev", "train"], 4, str(tmp_path / "new"))
    assert list(scores) == ["dev", "train"] and 0 <= scores["dev"]["accuracy"] <= 1
    assert "mine, dev, 9 examples: accuracy 0." in capsys.readouterr().out
    written = json.loads((tmp_path / "new" / "scores.json").read_text())
    assert written == {"task": "mine", "scores": scores}
    answers = predict(found, data, ["dev"], 4, str(tmp_path))
    names = [LABELS[value] for value in answers["dev"].values]
    right = np.mean([e.label == name for e, name in zip(small_splits["dev"].examples, names)])
    assert right == pytest.approx(scores["dev"]["accuracy"])
    table = (tmp_path / "predictions" / "mine_dev.tsv").read_text().splitlines()
    assert len(table) == 10 and f"9 predictions: {tmp_path}/predictions" in capsys.readouterr().out


def test_a_model_of_another_task(folder, one_device, tiny_config, tmp_path):
    with pytest.raises(
        UserError, match=r"a model for mine, and --task=race needs a fine-tuned one for multiple"
    ):
        load_finetuned(folder, TASKS["race"], one_device)
    with pytest.raises(UserError, match="classes long, short, and --task=rte has entailment"):
        load_finetuned(folder, TASKS["rte"], one_device)
    with pytest.raises(UserError, match="--task=sts-b has numbers"):
        load_finetuned(folder, TASKS["sts-b"], one_device)
    assert load_finetuned(folder, own_classes(), one_device).labels == LABELS
    with pytest.raises(UserError, match="--task=ax has no labeled examples .* --mode=predict"):
        found = load_finetuned(folder, TASK, one_device)
        ax = dataclasses.replace(found.task, name="ax")
        evaluate(found._replace(task=ax), TaskData(), [], 4, str(tmp_path))
    plain = str(tmp_path / "plain")
    with one_device.strategy.scope():
        native.save(TASK.new_model(tiny_config, LABELS, 0.1, True), plain, {})
    with pytest.raises(UserError, match="a fine-tuned one for classification"):
        load_finetuned(plain, TASK, one_device)


@pytest.mark.parametrize(
    ("trained_on", "asked", "is_refused"),
    [
        ("qnli", "rte", True),
        ("cola", "mrpc", True),
        ("rte", "rte", False),
        ("mnli", "ax", False),
        ("rte", "tsv", False),
        ("tsv", "rte", False),
    ],
)
def test_a_model_of_another_benchmark(trained_on, asked, is_refused, folder):
    """Its classes have the same names."""
    metadata = native.read_metadata(folder)
    metadata |= {"finetuned_on": trained_on, "labels": TASKS[asked].labels or LABELS}
    metadata["labels"] = list(metadata["labels"])
    (Path(folder) / native.METADATA_FILE).write_text(json.dumps(metadata))
    if not is_refused:
        assert load_finetuned(folder, TASKS[asked], None).task.name == asked
        return
    with pytest.raises(UserError, match=f"model for {trained_on}, whose answers .*--task={asked}"):
        load_finetuned(folder, TASKS[asked], None)


def test_all_splits_are_read_before_the_first_is_answered(
    folder, small_splits, one_device, tmp_path, capsys
):
    found = load_finetuned(folder, TASK, one_device)
    skipped = dataclasses.replace(small_splits["dev"], skipped_lines=(3,))
    data = TaskData(splits={"dev": skipped})
    for use in (evaluate, predict):
        with pytest.raises(UserError, match="--train_file is missing"):
            use(found, data, ["dev", "train"], 4, str(tmp_path / "run"))
        assert "1 of 10 rows are empty or lack columns" in capsys.readouterr().out
    assert not (tmp_path / "run").exists()


def test_pairs_are_not_read_as_single_texts(folder):
    """As the columns of a model are those of the flags."""
    path = Path(folder) / native.METADATA_FILE
    for trained, given in (("text_b", None), (None, "text_b"), ("a", "b")):
        metadata = native.read_metadata(folder) | {"data_settings": {"pair_column": trained}}
        path.write_text(json.dumps(metadata))
        task = own_classes(Classes(pair_column=given))
        if trained and given:
            assert load_finetuned(folder, task, None).task is task
            continue
        with pytest.raises(UserError, match=f"--pair_column is {given or 'missing'}"):
            load_finetuned(folder, task, None)


def test_the_last_model_leaves_the_answers_of_the_best(folder, small_splits, one_device, tmp_path):
    shutil.copytree(folder, tmp_path / "last_model")
    data = TaskData(splits=small_splits)
    for name in ("model", "last_model"):
        found = load_finetuned(str(tmp_path / name), TASK, one_device)
        predict(found, data, ["dev"], 4, str(tmp_path))
    found = sorted(path.name for path in (tmp_path / "predictions").iterdir())
    assert found == ["mine_dev.last.tsv", "mine_dev.tsv"]
    shutil.rmtree(tmp_path / "model")  # No checkpoint had a score: the last one is the run's.
    shutil.rmtree(tmp_path / "predictions")
    last = load_finetuned(str(tmp_path / "last_model"), TASK, one_device)
    predict(last, data, ["dev"], 4, str(tmp_path))
    assert [path.name for path in (tmp_path / "predictions").iterdir()] == ["mine_dev.tsv"]
