"""The answers that exports are held to are those of run_finetuning --mode=predict."""

import numpy as np
import pytest

from albert_tf.finetuning.evaluation import Predictor
from data_pipeline.finetuning.examples import ChoiceExample, Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.tagging import TaggedExample
from export import finetuned
from tests.export.conftest import LABELS, TAGS, loaded_as

TEXTS, PAIRS = ["the cat", "a dog " * 30, ""], ["Paris", "", "2010, 3.0"]


@pytest.mark.parametrize("pairs", [None, PAIRS])
def test_classes_are_those_of_the_predictor(keras_models, vocabulary, pairs):
    task, model = finetuned.CLASSES, keras_models["classifier"]
    split, lengths = finetuned.text_split(TEXTS, pairs), LengthSettings(48)
    found = finetuned.answer(task, loaded_as(model, vocabulary, labels=LABELS), split)
    features = task.features(split, vocabulary, lengths, LABELS, False)
    expected = task.answer(features, [task.keep(features, Predictor(model, features, 2)())])
    np.testing.assert_allclose(found.predictions.probabilities, expected.probabilities, atol=1e-5)
    assert found.predictions.values == expected.values
    assert found.inputs["input_word_ids"].shape == (3, features.lengths.max())


def test_numbers_tags_and_choices(keras_models, vocabulary):
    def answered(task, name, split, **settings):
        loaded = loaded_as(keras_models[name], vocabulary, **settings)
        return finetuned.answer(task, loaded, split, LengthSettings(48, max_qa_length=20))

    numbers = answered(finetuned.NUMBERS, "regression", finetuned.text_split(TEXTS))
    np.testing.assert_array_equal(numbers.predictions.values, numbers.outputs["logits"][:, 0])
    sentences = ("the", "cat"), ("Paris",) * 60
    sentences = [TaggedExample(str(n), words, None, "", n) for n, words in enumerate(sentences)]
    found = answered(finetuned.TAGS, "tagger", Split("", sentences), labels=TAGS)
    tags = found.predictions.values
    assert list(map(len, tags)) == [2, 60] and tags[1][-1] == "O"
    choice = ChoiceExample("0", "the cat runs", "_ runs.", ("cat", "dog"), None, "", "", 0)
    found = answered(finetuned.CHOICES, "multiple_choice", Split("", [choice]))
    assert found.inputs["input_mask"].shape[:2] == (1, 2)
    assert found.predictions.probabilities.shape == (1, 2)


def test_close_rows_are_not_decided():
    assert finetuned.are_decided(np.array([[0.2, 0.8], [0.501, 0.499]]))
    assert not finetuned.are_decided(np.array([[0.2, 0.8], [0.50002, 0.49998]]))
    assert finetuned.are_decided(np.array([[1.0]]))
