"""The published scores: the table's own averages, and a few values of each source."""

import re
from pathlib import Path

import pytest

from albert_tf.finetuning.runs.published_scores import PUBLISHED_SCORES, published_score
from albert_tf.metrics import SCORERS
from albert_tf.pretrained.presets import PRESETS

# The README's "Avg" of each row.
AVERAGES = {
    "albert-base-v2": 82.3, "albert-large-v2": 85.7, "albert-xlarge-v2": 87.9,
    "albert-xxlarge-v2": 90.9, "albert-base-v1": 80.1, "albert-large-v1": 82.4,
    "albert-xlarge-v1": 85.5, "albert-xxlarge-v1": 91.0,
}  # fmt: skip


@pytest.mark.parametrize("preset", AVERAGES)
def test_averages_of_the_readme(preset):
    """The mean of five columns; those of SQuAD count with the mean of both scores."""

    def percent(task, metric):
        return published_score(preset, task, metric).percent

    squad = [(percent(f"squad{v}", "f1") + percent(f"squad{v}", "exact")) / 2 for v in (1.1, "2.0")]
    others = [percent(task, "accuracy") for task in ("mnli", "sst-2", "race")]
    assert sum([*squad, *others]) / 5 == pytest.approx(AVERAGES[preset], abs=0.0501)


def test_the_tables_of_the_documentation():
    """docs/finetuning.md has every score, by preset and column, and no other."""
    page = Path(__file__).parents[4] / "docs" / "finetuning.md"
    found, columns = {}, []
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if cells[0] == "preset":
            columns = [tuple(re.fullmatch(r"`(.+)` (\w+)", cell).groups()) for cell in cells[1:]]
        elif cells[0] in PUBLISHED_SCORES:
            values = zip(columns, cells[1:], strict=True)
            found.update({(cells[0], *column): value for column, value in values if value != "-"})
    assert found == {
        (preset, *column): str(score.percent)
        for preset, scores in PUBLISHED_SCORES.items()
        for column, score in scores.items()
    }


def test_presets_and_tasks_are_ours():
    assert set(PUBLISHED_SCORES) == set(AVERAGES) <= set(PRESETS)
    for scores in PUBLISHED_SCORES.values():
        for task, metric in scores:
            assert task in ("squad1.1", "squad2.0") or metric.split("_m")[0].split("_h")[0] in (
                SCORERS[task].key,
                "matthews",
            )


@pytest.mark.parametrize(
    "preset, task, metric, percent, source",
    [
        ("albert-base-v2", "squad2.0", "exact", 79.3, "README"),
        ("albert-xxlarge-v1", "cola", "matthews_corrcoef", 71.4, "1.5M steps"),
        ("albert-xxlarge-v1", "race", "accuracy_middle", 89.0, "RACE test"),
        ("albert-base-v2", "mrpc", "accuracy", 86.5, "notebook"),
    ],
)
def test_values(preset, task, metric, percent, source):
    score = published_score(preset, task, metric)
    assert score.percent == percent and source in score.publication


def test_nothing_published():
    assert published_score(None, "mrpc", "accuracy") is None
    assert published_score("albert-base-v1", "mrpc", "accuracy") is None
    assert published_score("bert-base", "mnli", "accuracy") is None
