"""Tasks of texts: features, answers of one model and several, scores, tables."""

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.texts import ClassificationTask, RegressionTask
from albert_tf.metrics import SCORERS
from data_pipeline.finetuning.examples import Split, TextExample
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.loading import load_tokenizer

LABELS = ("no", "yes")
TASK = ClassificationTask("mine", None, LABELS, SCORERS["mrpc"])
NUMBERS = RegressionTask("grade", None, SCORERS["sts-b"])
LENGTHS = LengthSettings(24)


def split_of(*labels, text_b=None) -> Split:
    texts = ("the cat sat on a mat", "every dog ran off", "nobody knew")
    examples = [
        TextExample(f"dev-{number}", text, text_b, label, "dev.tsv", number + 2)
        for number, (text, label) in enumerate(zip(texts, labels))
    ]
    return Split("dev", examples)


@pytest.fixture
def tokenizer(vocab_file):
    return load_tokenizer(vocab_file)


def test_features_of_classes(tokenizer):
    split = split_of("yes", "no", "yes")
    features = TASK.features(split, tokenizer, LENGTHS, LABELS, True)
    assert features.source is split.examples and len(features) == 3
    assert features.targets["label_ids"].tolist() == [1, 0, 1] == TASK.gold(features)
    batch = features.batch(np.array([1, -1]), 24)
    ids = tokenizer.encode("every dog ran off")
    assert batch["input_word_ids"][0].tolist()[: len(ids) + 2] == [
        tokenizer.cls_id,
        *ids,
        tokenizer.sep_id,
    ]
    assert batch["example_weights"].tolist() == [1, 0] and features.lengths[1] == len(ids) + 2
    assert set(features.content) == {"ids", "lengths", "first", "label_ids"}
    unknown = TASK.features(split_of(None, None, None), tokenizer, LENGTHS, LABELS, False)
    assert not unknown.targets and "label_ids" not in unknown.batch(np.array([0]), 24)
    with pytest.raises(UserError, match="dev.tsv:3: found the label 'maybe', not one of no, yes"):
        TASK.features(split_of("yes", "maybe", "no"), tokenizer, LENGTHS, LABELS, True)


def test_features_of_numbers(tokenizer):
    features = NUMBERS.features(split_of(2.5, 1.0, 5.0), tokenizer, LENGTHS, (), True)
    assert features.targets["label_values"].tolist() == [2.5, 1.0, 5.0] == NUMBERS.gold(features)
    with pytest.raises(UserError, match="dev.tsv:2: expected a number as label, found 'yes'"):
        NUMBERS.features(split_of("yes", 1.0, 2.0), tokenizer, LENGTHS, (), True)


def test_answers_of_one_model_and_several(tokenizer):
    features = TASK.features(split_of("yes", "no", "yes"), tokenizer, LENGTHS, LABELS, True)
    members = [
        {"logits": np.log(np.float32(rows))}
        for rows in ([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], [[0.05, 0.95], [0.6, 0.4], [0.7, 0.3]])
    ]
    kept = TASK.keep(features, members[0])
    assert list(kept) == ["logits"]
    alone = TASK.answer(features, members[:1])
    assert alone.values == [0, 0, 1]
    np.testing.assert_allclose(alone.probabilities, np.exp(members[0]["logits"]), rtol=1e-5)
    both = TASK.answer(features, members)
    assert both.values == [1, 0, 1]
    np.testing.assert_allclose(both.probabilities[0], [0.475, 0.525], rtol=1e-5)
    assert TASK.score(features, both) == {"accuracy": 1.0, "f1": 1.0}
    assert TASK.score(features, alone)["accuracy"] == pytest.approx(2 / 3)
    numbers = NUMBERS.features(split_of(2.5, 1.0, 5.0), tokenizer, LENGTHS, (), True)
    members = [{"logits": np.float32([[1], [2], [3]])}, {"logits": np.float32([[3], [2], [5]])}]
    mean = NUMBERS.answer(numbers, members)
    assert mean.values == [2.0, 2.0, 4.0] and mean.probabilities is None
    assert NUMBERS.score(numbers, mean)["mean_squared_error"] == pytest.approx(2.25 / 3)


def test_tables(tokenizer, tmp_path):
    path = str(tmp_path / "mine_dev")
    for labels, texts in ((("yes", "no", "yes"), None), ((None,) * 3, "a mat")):
        features = TASK.features(
            split_of(*labels, text_b=texts), tokenizer, LENGTHS, LABELS, labels[0] is not None
        )
        logits = np.float32([[2, 0], [0, 2], [0, 0]])
        predictions = TASK.answer(features, [{"logits": logits}])
        assert TASK.write(path, features, LABELS, predictions) == [f"{path}.tsv"]
        rows = [line.split("\t") for line in (tmp_path / "mine_dev.tsv").read_text().splitlines()]
        if texts:
            assert rows[0] == ["id", "text", "text_b", "prediction", "p(no)", "p(yes)"]
            assert rows[2][:4] == ["dev-1", "every dog ran off", "a mat", "yes"]
        else:
            assert rows[0] == ["id", "text", "label", "prediction", "p(no)", "p(yes)"]
            assert rows[1][2:] == ["yes", "no", "0.880797", "0.119203"]
    numbers = NUMBERS.features(split_of(2.5, 1.0, 5.0), tokenizer, LENGTHS, (), True)
    predictions = NUMBERS.answer(numbers, [{"logits": np.float32([[1], [2], [3]])}])
    NUMBERS.write(path, numbers, (), predictions)
    rows = (tmp_path / "mine_dev.tsv").read_text().splitlines()
    assert rows[0] == "id\ttext\tlabel\tprediction" and rows[1].endswith("\t2.500000\t1.000000")
