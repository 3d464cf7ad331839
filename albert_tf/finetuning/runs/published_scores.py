"""Scores that others have published for ALBERT, to compare one's own with.

In percent, as published; mostly the best of many checkpoints on the development set (a "single
run", according to the reference's maintainer), with the hyper-parameters of the paper's Table 14.
"""

from __future__ import annotations

from typing import NamedTuple


class PublishedScore(NamedTuple):
    """A published score.

    Attributes:
      percent: its value, in percent.
      publication: where it was published.
    """

    percent: float
    publication: str


_README = "google-research/albert, README, dev"
_PAPER = "Lan et al. (2020), GLUE dev, single model, 1.5M steps"
# The columns of the README's table: (task, name of the score).
_COLUMNS = (
    ("squad1.1", "f1"),
    ("squad1.1", "exact"),
    ("squad2.0", "f1"),
    ("squad2.0", "exact"),
    ("mnli", "accuracy"),
    ("sst-2", "accuracy"),
    ("race", "accuracy"),
)
_ROWS = {
    "albert-base-v2": (90.2, 83.2, 82.1, 79.3, 84.6, 92.9, 66.8),
    "albert-large-v2": (91.8, 85.2, 84.9, 81.8, 86.5, 94.9, 75.2),
    "albert-xlarge-v2": (92.9, 86.4, 87.9, 84.1, 87.9, 95.4, 80.7),
    "albert-xxlarge-v2": (94.6, 89.1, 89.8, 86.9, 90.6, 96.8, 86.8),
    "albert-base-v1": (89.3, 82.3, 80.0, 77.1, 81.6, 90.3, 64.0),
    "albert-large-v1": (90.6, 83.9, 82.3, 79.4, 83.5, 91.7, 68.5),
    "albert-xlarge-v1": (92.5, 86.1, 86.1, 83.1, 86.4, 92.4, 74.8),
    "albert-xxlarge-v1": (94.8, 89.3, 90.2, 87.4, 90.8, 96.9, 86.5),
}
# The paper's dev columns that the README does not have: accuracy also for MRPC and QQP.
_XXLARGE_V1 = {
    ("qnli", "accuracy"): 95.3,
    ("qqp", "accuracy"): 92.2,
    ("rte", "accuracy"): 89.2,
    ("mrpc", "accuracy"): 90.9,
    ("cola", "matthews_corrcoef"): 71.4,
    ("sts-b", "pearson"): 93.0,
}
# The README lists this score of RACE's test set among scores of dev sets.
_XXLARGE_V1_RACE_TEST = {
    ("race", "accuracy"): 86.5,
    ("race", "accuracy_middle"): 89.0,
    ("race", "accuracy_high"): 85.5,
}
_BASE_V2 = {("mrpc", "accuracy"): 86.5}


def _table() -> dict[str, dict[tuple[str, str], PublishedScore]]:
    table = {
        preset: {column: PublishedScore(value, _README) for column, value in zip(_COLUMNS, row)}
        for preset, row in _ROWS.items()
    }
    more = (
        ("albert-xxlarge-v1", _XXLARGE_V1, _PAPER),
        ("albert-xxlarge-v1", _XXLARGE_V1_RACE_TEST, "Lan et al. (2020), RACE test"),
        ("albert-base-v2", _BASE_V2, "google-research/albert, its notebook on GLUE, dev"),
    )
    for preset, scores, publication in more:
        table[preset].update({key: PublishedScore(v, publication) for key, v in scores.items()})
    return table


# Preset -> (task, name of the score) -> the published score.
PUBLISHED_SCORES = _table()


def published_score(preset: str | None, task: str, metric: str) -> PublishedScore | None:
    """The published score of a preset, such as albert-base-v2; None where nothing was published."""
    return PUBLISHED_SCORES.get(preset or "", {}).get((task, metric))
