"""Tasks of options: features, scores by group, tables."""

import numpy as np
import pytest

from albert_tf.finetuning.tasks.choices import MultipleChoiceTask
from albert_tf.metrics import SCORERS
from data_pipeline.finetuning.examples import ChoiceExample, Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.loading import load_tokenizer

LABELS = ("A", "B")
TASK = MultipleChoiceTask("mine", lambda *given: None, LABELS, SCORERS["race"])


def split_of(*labels) -> Split:
    examples = [
        ChoiceExample(
            f"q{n}", "the cat sat on a mat", "a _ sat", ("dog", "cat"), label, group, "f", n
        )
        for n, (label, group) in enumerate(zip(labels, ("middle", "high", "high")))
    ]
    return Split("dev", examples)


@pytest.fixture
def features(vocab_file):
    tokenizer, lengths = load_tokenizer(vocab_file), LengthSettings(24)
    return lambda split, known: TASK.features(split, tokenizer, lengths, LABELS, known)


def test_features(features):
    found = features(split_of(1, 0, 1), True)
    assert len(found) == 3 and found.targets["label_ids"].tolist() == [1, 0, 1]
    assert TASK.gold(found) == [1, 0, 1]
    batch = found.batch(np.array([0, 2]), 24)
    assert batch["input_word_ids"].shape == (2, 2, 24)
    assert found.lengths[0] == batch["input_mask"][0].sum(axis=1).max()
    assert not features(split_of(None, None, None), False).targets
    assert set(found.content) == {"ids", "lengths", "first", "label_ids"}


def test_scores_and_table(features, tmp_path):
    found = features(split_of(1, 0, 1), True)
    logits = np.float32([[0, 1], [0, 1], [1, 2]])
    predictions = TASK.answer(found, [TASK.keep(found, {"logits": logits})])
    assert predictions.values == [1, 1, 1]
    scores = TASK.score(found, predictions)
    assert scores == {"accuracy": pytest.approx(2 / 3), "accuracy_middle": 1, "accuracy_high": 0.5}
    (path,) = TASK.write(str(tmp_path / "race_dev"), found, LABELS, predictions)
    rows = [line.split("\t") for line in (tmp_path / "race_dev.tsv").read_text().splitlines()]
    assert path == str(tmp_path / "race_dev.tsv")
    assert rows[0] == ["id", "question", "chosen", "label", "prediction", "p(A)", "p(B)"]
    assert rows[2][:5] == ["q1", "a _ sat", "cat", "A", "B"]
    unknown = features(split_of(None, None, None), False)
    TASK.write(str(tmp_path / "race_test"), unknown, LABELS, predictions)
    assert "label" not in (tmp_path / "race_test.tsv").read_text().splitlines()[0]
