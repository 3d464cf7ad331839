"""The task of pairs: files, targets, the loss that suits the data, ranks and scores."""

from __future__ import annotations

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.pairs import ranks
from albert_tf.finetuning.tasks.table import Pairs, own_pairs, trained_task
from data_pipeline.finetuning.datasets import read_dataset
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.loading import load_tokenizer

ROWS = [
    {"text": "the cat sat", "pair": "a cat sat", "label": 5},
    {"text": "a dog ran", "pair": "the dog", "label": 0},
    {"text": "off quickly", "pair": "a cat sat", "label": 2.5},
]


@pytest.fixture
def features_of(vocab_file):
    tokenizer, lengths = load_tokenizer(vocab_file), LengthSettings(24)

    def features_of(task, rows=ROWS, **columns):
        columns = {"pair": "pair", "label": "label", **columns}
        split = read_dataset(rows, "train", is_regression=True, **columns)
        return task.features(split, tokenizer, lengths, ())

    return features_of


def test_a_row_has_two_texts_and_its_label_is_scaled(features_of):
    task = own_pairs(Pairs(label_scale=5.0))
    found = features_of(task)
    np.testing.assert_array_equal(found.targets["label_values"], np.float32([1, 0, 0.5]))
    batch = found.batch(np.array([0, 2]), 24)
    assert batch["input_word_ids"].shape == (2, 2, 24)
    np.testing.assert_array_equal(*batch["input_word_ids"][:, 1])  # The second texts are equal.
    assert not batch["input_type_ids"].any()  # Each is a text of its own.
    with pytest.raises(UserError, match="train dataset:1: found the label 5, .*label_scale=1."):
        features_of(own_pairs())


def test_the_data_decide_loss_masks_and_score(features_of):
    task = own_pairs(Pairs(label_scale=5.0))
    labeled, pairs = features_of(task), features_of(task, label=None)
    single = features_of(task, pair=None, label=None)
    ids = single.batch(np.arange(3), 24)["input_word_ids"]
    np.testing.assert_array_equal(ids[:, 0], ids[:, 1])

    def chosen(training, dev, task=task):
        task = task.for_training(training, dev)
        return task.loss, task.text_mask_prob, task.key

    assert chosen(labeled, labeled) == ("cosine", 0.0, "spearman")
    assert chosen(pairs, pairs) == ("in_batch", 0.0, "mean_reciprocal_rank")
    assert chosen(single, labeled) == ("in_batch", 0.3, "spearman")
    given = own_pairs(Pairs(label_scale=5.0, pair_loss="in_batch", text_mask_prob=0.1))
    assert chosen(labeled, pairs, given) == ("in_batch", 0.1, "mean_reciprocal_rank")
    assert task.scored_on(pairs).key == "mean_reciprocal_rank"
    with pytest.raises(UserError, match="dev set has single texts, .*--pair_column"):
        chosen(pairs, single)
    for training in (pairs, single, features_of(task, pair=None)):
        with pytest.raises(UserError, match="pair_loss=cosine compares two texts"):
            chosen(training, labeled, own_pairs(Pairs(pair_loss="cosine", label_scale=5.0)))


def test_answers_and_scores(features_of):
    task = own_pairs(Pairs(label_scale=5.0))
    east, north, far = [1.0, 0], [0, 2.0], [3.0, 0.3]
    vectors = np.float32([[east, far], [north, north], [far, far]])
    labeled, pairs = features_of(task), features_of(task, label=None)
    kept = task.keep(labeled, {"mean_output": vectors})
    np.testing.assert_allclose(kept["cosines"], [3 / np.hypot(3, 0.3), 1, 1], rtol=1e-6)
    scores = task.score(labeled, task.answer(labeled, [kept]))
    assert set(scores) == {"pearson", "spearman", "mean_squared_error"}
    assert set(task.keep(pairs, {"mean_output": vectors})) == {"cosines"}  # Without a score.
    task = task.scored_on(pairs)
    kept = task.keep(pairs, {"mean_output": vectors})
    answers = task.answer(pairs, [kept, kept])
    assert task.score(pairs, answers) == {"accuracy_at_1": 1.0, "mean_reciprocal_rank": 1.0}
    assert answers.values == pytest.approx(kept["cosines"])


def test_ranks():
    """Equal texts count once, and equally near ones come before the right one."""
    second = np.float32([[1, 0], [0, 1], [1, 0], [0.5, 0.5]])
    first = np.float32([[1, 0], [1, 0], [1, 0], [1, 1]])
    assert ranks(first, second, ["a", "b", "a", "c"]).tolist() == [1, 3, 1, 3]
    assert ranks(first, second, ["a", "b", "other", "c"]).tolist() == [2, 4, 2, 4]
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal([2, 2500, 4]).astype(np.float32)
    products = first @ second.T
    order = (-products).argsort(axis=1)
    expected = [list(row).index(number) + 1 for number, row in enumerate(order)]
    assert ranks(first, second, [str(n) for n in range(2500)]).tolist() == expected


def test_files(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("text\tpair\tlabel\na\tb\t0.5\n")
    data = TaskData(files=dict.fromkeys(("train", "dev", "predict"), str(path)))

    def read(split, **columns):
        (example,) = own_pairs(Pairs(**columns)).read(data, split).examples
        return example.text_a, example.text_b, example.label

    assert read("train") == read("dev") == ("a", "b", 0.5)
    assert read("predict") == ("a", "b", None)
    path.write_text("text\tother\na\tb\n")
    assert read("train") == ("a", None, None)
    assert read("dev", pair_column="other") == ("a", "b", None)
    for split in ("dev", "predict"):  # What is scored and predicted are pairs.
        with pytest.raises(UserError, match="no column 'pair'"):
            read(split)
    with pytest.raises(UserError, match="no column 'grade'"):
        read("train", label_column="grade")


def test_a_trained_models_scale_is_taken_over():
    task = own_pairs(Pairs(label_scale=5.0))
    metadata = {"finetuned_on": "pairs", "data_settings": dict(task.data_settings)}
    assert own_pairs().as_in(metadata).label_scale == 5
    assert own_pairs(Pairs(label_scale=1.0)).as_in(metadata).label_scale == 1
    assert trained_task(metadata).label_scale == 5
