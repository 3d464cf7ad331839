"""An ensemble from stored outputs to its files, its choice of members, and the table of its scores;
run_ensemble_test.py has whole runs.
"""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.runs import members
from albert_tf.finetuning.runs.ensemble import (
    EnsembleSettings,
    MemberScore,
    Report,
    SplitScore,
    choose_greedily,
    choose_members,
    run_ensemble,
    table_text,
    take_all,
)
from albert_tf.finetuning.runs.members import Member
from albert_tf.finetuning.runs.run_files import Origin, outputs_path, write_outputs
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.metrics import Scores
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


def table_of(scores: dict[tuple[int, ...], float | None]):
    """Numbers of members -> their score, whatever their order."""
    return lambda numbers: {"f1": scores[tuple(sorted(numbers))]}


SCORES = {
    (0,): 0.5, (1,): 0.7, (2,): 0.6, (3,): None, (0, 1): 0.8, (1, 2): 0.7, (1, 3): 0.1,
    (0, 1, 2): 0.8, (0, 1, 3): 0.8, (0, 1, 2, 3): 0.75,
}  # fmt: skip
ALONE: list[Scores] = [{"f1": SCORES[(number,)]} for number in range(4)]


def test_greedy_choice_takes_what_helps_most_and_the_shortest_of_equal_ones():
    chosen, steps = choose_greedily(ALONE, table_of(SCORES), "f1")
    assert chosen == [1, 0]
    assert [step.added for step in steps] == [1, 0, 2, 3]
    assert [step.scores["f1"] for step in steps] == [0.7, 0.8, 0.8, 0.75]


def test_all_members_from_the_best_on():
    chosen, steps = take_all(ALONE, table_of({**SCORES, (1, 2): 0.9}), "f1")
    assert chosen == [step.added for step in steps] == [1, 2, 0, 3]
    assert [step.scores["f1"] for step in steps] == [0.7, 0.9, 0.8, 0.75]


def test_undefined_scores_are_chosen_last():
    undefined: list[Scores] = [{"f1": None}, {"f1": -0.5}]
    scores = table_of({(1,): -0.5, (0, 1): None})
    assert choose_greedily(undefined, scores, "f1")[0] == [1]


TASK = SimpleNamespace(
    dev_splits=("dev",),
    key="f1",
    answer=lambda features, outputs: [sum(row) for row in zip(*outputs)],
    score=lambda features, sums: {"f1": float(sums == features)},
)
MEMBERS = [Member(f"run{n}", "best", "", {"dev": output}) for n, output in enumerate([[1], [2]])]


def test_members_are_compared_by_what_the_task_answers_with_their_outputs():
    answered = {"test": None, "dev": SimpleNamespace(features=[3])}
    chosen = choose_members(TASK, MEMBERS, answered, "all")
    assert (chosen.split, chosen.order) == ("dev", [0, 1])
    assert chosen.alone == [{"f1": 0.0}, {"f1": 0.0}]
    assert [step.scores["f1"] for step in chosen.steps] == [0.0, 1.0]


def test_without_known_answers_all_members_answer_and_none_is_chosen():
    chosen = choose_members(TASK, MEMBERS, {"test": None}, "all")
    assert (chosen.split, chosen.order, chosen.steps) == (None, [0, 1], [])
    with pytest.raises(UserError, match="--choose=greedy needs outputs on a split .*: dev"):
        choose_members(TASK, MEMBERS, {"test": None}, "greedy")


def test_table():
    members = [
        MemberScore("a", "last", "", False, {"f1": None}),
        MemberScore("a", "best", "", True, {"f1": 0.5}),
    ]
    results = [SplitScore("dev", 8, "", {"accuracy": 0.25, "f1": 0.75}, ["All are 1."])]
    report = Report("mrpc", "f1", "votes", "greedy", "dev", members, results)
    assert table_text(report).splitlines() == [
        "| split | score | ensemble |",
        "| --- | --- | ---: |",
        "| dev | accuracy | 25.0 |",
        "| dev | **f1** | 75.0 |",
        "",
        "| member | f1 on dev by itself | chosen |",
        "| --- | ---: | --- |",
        "| a (best) | 50.0 | yes |",
        "| a (last) | undefined | no |",
        "",
        "- mrpc; average: votes.",
        "- Members were chosen on dev, so the score on it is too optimistic for new data.",
        "- mrpc, dev: All are 1.",
    ]
    assert table_text(dataclasses.replace(report, results=[])).startswith("| member |")
    unknown = [dataclasses.replace(member, metrics=None) for member in members]
    others = {"results": [], "chosen_on": None, "choose": "all"}
    unscored = dataclasses.replace(report, members=unknown, **others)
    assert table_text(unscored).splitlines()[:3] == [
        "| member | chosen |",
        "| --- | --- |",
        "| a (best) | yes |",
    ]
