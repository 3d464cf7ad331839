"""An ensemble from stored outputs to its files; run_ensemble_test.py has whole runs."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.runs import members
from albert_tf.finetuning.runs.ensemble import EnsembleSettings, run_ensemble
from albert_tf.finetuning.runs.run_files import outputs_path
from albert_tf.finetuning.runs.stored_outputs import Origin, write_outputs
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS
from data_pipeline.finetuning.examples import Split, TextExample

DEV = Split("dev", [TextExample(f"{n}", "a", None, f"{n % 2}", "dev.tsv", n) for n in range(4)])
# Logits of class 1 in four examples, of which the second and the last are of class 1.
LOGITS = {"good": [-1, 3, -1, 1], "worse": [-1, -2, -1, 1], "bad": [1, -1, 1, -1]}


@pytest.fixture
def runs(tmp_path, monkeypatch) -> list[str]:
    """Folders of three runs, whose models are not there: no one needs their weights."""
    features = SimpleNamespace(source=DEV.examples, targets={"label_ids": np.array([0, 1, 0, 1])})
    known = {"labels": ("0", "1"), "metadata": {}}
    model = SimpleNamespace(features=lambda examples, has_targets: features, **known)
    monkeypatch.setattr(members, "load_finetuned", lambda *_: model)
    for name, logits in LOGITS.items():
        arrays = {"logits": np.stack([np.zeros(4), logits], axis=1).astype(np.float32)}
        origin = Origin("cola", ("0", "1"), DEV.sha256(), f"hash of {name}")
        write_outputs(outputs_path(str(tmp_path / name), "dev", "best"), arrays, origin)
    return [str(tmp_path / name) for name in LOGITS]


def test_answers_and_scores(runs, tmp_path):
    data, output = TaskData(splits={"dev": DEV}), tmp_path / "ensemble"
    settings = EnsembleSettings(choose="greedy", average="votes")
    answers = run_ensemble(runs, TASKS["cola"], data, str(output), settings)
    assert list(answers) == ["dev"]
    content = json.loads((output / "ensemble.json").read_text())
    assert content["version"] == 1
    settings = (content["average"], content["choose"], content["chosen_on"])
    assert settings == ("votes", "greedy", "dev")
    (result,) = content["results"]
    assert (result["split"], result["num_examples"]) == ("dev", 4)
    assert (result["data_sha256"], result["metrics"]["accuracy"]) == (DEV.sha256(), 1.0)
    assert [member["is_chosen"] for member in content["members"]] == [1, 0, 0]
    assert [member["metrics"]["accuracy"] for member in content["members"]] == [1.0, 0.75, 0.0]
    assert len((output / "predictions" / "cola_dev.tsv").read_text().splitlines()) == 5
    assert (output / "curve.csv").exists()


def test_the_answers_of_a_run_are_not_replaced(runs, tmp_path):
    (tmp_path / "good" / "run.json").write_text("{}")
    with pytest.raises(UserError, match="holds a run, whose answers would be replaced"):
        run_ensemble(runs, TASKS["cola"], TaskData(splits={"dev": DEV}), runs[0])
