"""Dataclasses in JSON: what is written is read, and what has other fields or types is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence

import pytest

from data_pipeline.errors import UserError
from data_pipeline.files import json_records


@dataclasses.dataclass(frozen=True)
class Score:
    step: int
    metrics: Mapping[str, float | None]


@dataclasses.dataclass(frozen=True)
class Report:
    task: str
    scores: Sequence[Score]
    seed: int | None
    is_good: bool = True
    notes: Sequence[str] = ()


REPORT = Report("mrpc", (Score(3, {"f1": 0.5, "accuracy": None}), Score(4, {"f1": 1})), None)
FIELDS = dataclasses.asdict(REPORT)


def test_round_trip(tmp_path):
    path = str(tmp_path / "report.json")
    json_records.write(path, 2, REPORT)
    assert json_records.read(path, 2, Report, "") == REPORT
    written = json.loads((tmp_path / "report.json").read_text())
    assert list(written) == ["version", "task", "scores", "seed", "is_good", "notes"]
    with pytest.raises(UserError, match=r"an object of version 1; received version 2\. Again\.$"):
        json_records.read(path, 1, Report, "Again.")
    (tmp_path / "report.json").write_text("[]")
    with pytest.raises(UserError, match=r"report.json should be .* received version None"):
        json_records.read(path, 1, Report, "")
    (tmp_path / "report.json").write_text('{"version": 1, "task": 3}')
    with pytest.raises(UserError, match=r"report.json: the file should have .* Again\.$"):
        json_records.read(path, 1, Report, "Again.")


def test_fields_with_defaults_may_be_missing():
    assert json_records.parse(Report, {"task": "a", "scores": [], "seed": 1}, "it") == Report(
        "a", (), 1
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": 5}, "task should be a text; received 5."),
        ({"task": None}, "task should be a text; received None."),
        ({"seed": True}, "seed should be an integer; received True."),
        ({"seed": 1.0}, "seed should be an integer; received 1.0."),
        ({"is_good": 1}, "is_good should be true or false; received 1."),
        ({"notes": "one"}, "notes should be a list; received 'one'."),
        ({"notes": [1]}, "notes[0] should be a text; received 1."),
        ({"scores": [5]}, "scores[0] should be an object; received 5."),
        ({"scores": [{"step": 1, "metrics": []}]}, "metrics should be an object; received []."),
        ({"scores": [{"step": 1, "metrics": {"f1": "1"}}]}, "metrics.f1 should be a finite number"),
        ({"scores": [{"step": 1, "metrics": {"f1": float("nan")}}]}, "metrics.f1 should be a fin"),
        ({"scores": [{"stop": 1, "metrics": {}}]}, "missing: step, unknown: stop."),
    ],
)
def test_other_types_and_fields(changes, message):
    with pytest.raises(UserError) as error:
        json_records.parse(Report, {**FIELDS, "scores": [], **changes}, "it")
    assert message in str(error.value)
