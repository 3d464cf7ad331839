"""results.json: what is written is read; what cannot be is refused. results.md: its table."""

import dataclasses
import json

import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.results import (
    RESULTS_FILE,
    TABLE_FILE,
    Result,
    Scored,
    read_results,
    results_table,
    write_results,
)

HASH = "0123456789abcdef" * 4
MRPC = Result(
    task="mrpc",
    split="dev",
    num_examples=408,
    key="accuracy",
    best_on="dev",
    best=Scored(600, {"accuracy": 0.875, "f1": 0.9111}, HASH),
    last=Scored(800, {"accuracy": 0.87, "f1": 0.91}),
    seed=3,
    preset="albert-base-v2",
    data_sha256={"train.tsv": HASH, "dev.tsv": HASH},
    init_sha256=HASH,
)
SIMILARITY = Result(
    task="sts-b",
    split="dev",
    num_examples=1500,
    key="pearson",
    best_on="dev",
    best=Scored(100, {"pearson": None, "mean_squared_error": 2.25}),
    last=Scored(100, {"pearson": None, "mean_squared_error": 2.25}),
    seed=None,
    preset=None,
    data_sha256={},
    notes=("Every prediction is 2.5.",),
)


def changed(result: Result, **changes) -> Result:
    return dataclasses.replace(result, **changes)


def test_round_trip(tmp_path):
    write_results(str(tmp_path), [MRPC, SIMILARITY])
    assert read_results(str(tmp_path)) == [MRPC, SIMILARITY]
    assert sorted(path.name for path in tmp_path.iterdir()) == [RESULTS_FILE, TABLE_FILE]
    table = (tmp_path / TABLE_FILE).read_text(encoding="utf-8")
    assert table == results_table([MRPC, SIMILARITY])


def test_the_schema(tmp_path):
    """The names that other programs read."""
    write_results(str(tmp_path), [MRPC])
    values = json.loads((tmp_path / RESULTS_FILE).read_text(encoding="utf-8"))
    best = {"step": 600, "metrics": {"accuracy": 0.875, "f1": 0.9111}, "model_sha256": HASH}
    last = {"step": 800, "metrics": {"accuracy": 0.87, "f1": 0.91}, "model_sha256": None}
    result = {
        "task": "mrpc", "split": "dev", "num_examples": 408, "key": "accuracy", "best_on": "dev",
        "best": best, "last": last, "seed": 3, "preset": "albert-base-v2", "init_sha256": HASH,
        "data_sha256": {"train.tsv": HASH, "dev.tsv": HASH}, "notes": [],
    }  # fmt: skip
    assert values == {"version": 1, "results": [result]}


def test_both_checkpoints_have_the_score_that_decides():
    with pytest.raises(UserError, match="best should have a score 'pearson': {'accuracy'"):
        changed(MRPC, key="pearson")


def test_files_that_are_no_results(tmp_path):
    path = tmp_path / RESULTS_FILE
    write_results(str(tmp_path), [MRPC])
    good = json.loads(path.read_text(encoding="utf-8"))

    def refused(values, message):
        path.write_text(json.dumps(values), encoding="utf-8")
        with pytest.raises(UserError, match=message) as error:
            read_results(str(tmp_path))
        assert str(error.value).startswith(str(path))
        assert str(error.value).endswith("Give the training command again.")

    refused([], "version 1; received version None")
    refused({**good, "version": 2}, "version 1; received version 2")
    refused({"version": 1}, "missing: results, unknown: none")
    result = good["results"][0]
    for wrong, message in (
        (5, r"results\[0\] should be an object; received 5"),
        ({**result, "sed": 1}, "missing: none, unknown: sed"),
        ({name: value for name, value in result.items() if name != "seed"}, "missing: seed"),
        ({**result, "best": {"step": 1}}, "best should have the fields"),
        ({**result, "last": 5}, "last should be an object"),
        ({**result, "data_sha256": []}, "data_sha256 should be an object"),
        ({**result, "num_examples": True}, "num_examples should be an integer"),
        ({**result, "key": "f2"}, "best should have a score 'f2'"),
        ({**result, "best": {**result["best"], "metrics": {"f1": "0.5"}}}, "metrics.f1 should be"),
    ):
        refused({**good, "results": [wrong]}, message)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="should hold JSON"):
        read_results(str(tmp_path))


TABLE = """\
| task | split | score | best | last | published |
| --- | --- | --- | ---: | ---: | ---: |
| mrpc | dev | **accuracy** | 87.5 | 87.0 | 86.5 [1] |
| mrpc | dev | f1 | 91.1 | 91.0 | - |
| sts-b | dev | **pearson** | undefined | undefined | - |
| sts-b | dev | mean_squared_error | 2.2500 | 2.2500 | - |

- mrpc, dev: best after 600 updates, last after 800; 408 examples, seed 3.
- sts-b, dev: best after 100 updates, last after 100; 1500 examples.
- sts-b, dev: Every prediction is 2.5.
- [1] google-research/albert, its notebook on GLUE, dev
"""


def test_table():
    assert results_table([MRPC, SIMILARITY]) == TABLE


def test_squad_is_in_percent_already():
    metrics = {"exact": 79.25, "f1": 82.0}
    squad = changed(
        MRPC, task="squad2.0", key="f1", best=Scored(9, metrics), last=Scored(9, metrics)
    )
    rows = results_table([squad, changed(MRPC, preset="albert-xxlarge-v1")]).splitlines()[2:6]
    assert rows == [
        "| squad2.0 | dev | exact | 79.2 | 79.2 | 79.3 [1] |",
        "| squad2.0 | dev | **f1** | 82.0 | 82.0 | 82.1 [1] |",
        "| mrpc | dev | **accuracy** | 87.5 | 87.0 | 90.9 [2] |",
        "| mrpc | dev | f1 | 91.1 | 91.0 | - |",
    ]


@pytest.mark.parametrize("split, shown", [("dev_matched", True), ("dev_mismatched", False)])
def test_published_scores_are_of_dev(split, shown):
    table = results_table([changed(MRPC, task="mnli", split=split)])
    assert ("84.6 [1]" in table) == shown
    assert "84.6" not in results_table([changed(MRPC, task="mnli", split="test")])
