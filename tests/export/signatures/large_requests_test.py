"""Small requests that ask for much: graphs refuse them, or read them a few rows at a time."""

import numpy as np
import pytest
import tensorflow as tf

from export.probes import serialized_examples
from export.signatures.masked_lm import MASKS_AT_A_TIME, MOST_POSITIONS
from export.signatures.multiple_choice import MOST_FILLED_BYTES, MOST_SEQUENCES
from export.signatures.question_answering import MOST_WINDOWS
from export.signatures.tagging import MOST_WORDS
from export.tasks import TASKS

pytestmark = pytest.mark.one_stack


def refused(signature, sentence, **inputs):
    with pytest.raises(tf.errors.InvalidArgumentError, match=sentence):
        signature(**{name: tf.constant(value) for name, value in inputs.items()})


def tokens(rows, length, **others):
    ones = np.ones([rows, length], np.int32)
    names = ("input_word_ids", "input_mask", "input_type_ids")
    return dict.fromkeys(names, ones) | others


@pytest.mark.parametrize("position", [3, -1, 2**30])
def test_no_neighbor_answers_for_a_position_that_is_none(signatures, position):
    places = np.array([[0], [position]], np.int32)
    given = tokens(2, 3, masked_lm_positions=places)
    refused(signatures("masked_lm")["tokens"], "masked_lm_positions are from 0", **given)


def test_masks(signatures):
    places = np.zeros([2, MOST_POSITIONS // 2 + 1], np.int32)
    sentence = f"masked_lm_positions are at most {MOST_POSITIONS} in all"
    given = tokens(2, 3, masked_lm_positions=places)
    refused(signatures("masked_lm")["tokens"], sentence, **given)


def test_a_text_of_many_masks_fails_nobody_elses(signatures):
    """30 rows, filled up to 46 masks: more than are computed at once."""
    texts = ["[MASK]" * 46, *["the [MASK] is a [MASK]"] * 29]
    assert len(texts) * 46 > MASKS_AT_A_TIME
    signature = signatures("masked_lm")["serving_default"]
    found = {name: each.numpy() for name, each in signature(text=tf.constant(texts)).items()}
    assert found["num_masks"].tolist() == [46, *[2] * 29]
    alone = signature(text=tf.constant(texts[-1:]))
    for name in ("top_pieces", "top_ids", "positions"):
        np.testing.assert_array_equal(found[name][-1, :2], alone[name][0].numpy())
    np.testing.assert_allclose(
        found["top_probabilities"][-1, :2], alone["top_probabilities"][0], atol=1e-6
    )


def test_words(signatures):
    texts = ["a " * (MOST_WORDS // 16 + 1)] + ["cat"] * 15
    sentence = f"words in one of them are at most {MOST_WORDS}"
    refused(signatures("tagging")["serving_default"], sentence, text=texts)


def test_questions_with_their_options(signatures):
    sentence = f"at most {MOST_FILLED_BYTES} bytes"
    given = {"context": ["cat"], "options": [["a"] * 64]}
    question = ["_" * (MOST_FILLED_BYTES // 64)]
    refused(signatures("multiple_choice")["serving_default"], sentence, question=question, **given)


def test_windows(signatures):
    """Of 48 tokens with a stride of 8: each context makes about 150."""
    sentence = f"more than {MOST_WINDOWS} windows"
    given = {"question": ["who"] * 4, "context": ["cat dog " * 625] * 4}
    refused(signatures("question_answering")["serving_default"], sentence, **given)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "preprocessor"])
def test_masks_and_types_that_are_none(signatures, task):
    signature = signatures(task)["tokens"]
    rank = signature.structured_input_signature[1]["input_mask"].shape.rank
    shape = [1, 8] if rank == 2 else [1, 1, 8]
    specs = signature.structured_input_signature[1]
    given = {name: np.zeros(shape, np.int32) for name, spec in specs.items()}
    given["input_mask"] += 1
    signature(**{name: tf.constant(value) for name, value in given.items()})
    refused(signature, "input_mask is 0 or 1", **given | {"input_mask": given["input_mask"] + 6})
    types = given["input_type_ids"]
    for wrong in (types + 2, types - 1):
        refused(signature, "input_type_ids are from 0 to 1", **given | {"input_type_ids": wrong})
    if "impossible_positions" in given:
        refused(
            signature, "impossible_positions is 0 or 1", **given | {"impossible_positions": wrong}
        )


def test_many_options_as_few(signatures):
    """72 sequences, more than are read at once."""
    signature = signatures("multiple_choice")["serving_default"]
    words = ["cat", "dog", "house", "paris", "river", "water"]
    words += ["value", "file", "path", "man", "is", "in"]
    rows = [
        {
            "context": f"the {first} looked at the {second}",
            "question": f"{second} is _ ?",
            "options": [first, second, "every " + first],
        }
        for first, second in zip(words * 2, words[5:] + words + words[:5])
    ]

    def ask(rows):
        columns = {name: tf.constant([row[name] for row in rows]) for name in rows[0]}
        return signature(**columns)["probabilities"].numpy()

    alone = np.concatenate([ask([row]) for row in rows])
    np.testing.assert_allclose(ask(rows), alone, atol=1e-5)


def test_options_in_every_blank(signatures):
    """5,000 blanks times 5,000 letters: 25 MB of 10 kB."""
    signature = signatures("multiple_choice")["serving_default"]
    given = {"context": ["cat"], "question": ["_\uff3f" * 2500], "options": [["a" * 5000]]}
    refused(signature, f"at most {MOST_FILLED_BYTES} bytes", **given)


def test_options_of_all_rows(signatures):
    signature = signatures("multiple_choice")["serving_default"]
    rows = MOST_SEQUENCES // 64 + 1
    given = {"context": ["cat"] * rows, "question": ["a"] * rows, "options": [["b"] * 64] * rows}
    refused(signature, f"rows times options are at most {MOST_SEQUENCES}", **given)


@pytest.mark.parametrize(
    ("task", "inputs"),
    [
        ("question_answering", {"question": ["who"] * 2, "context": ["cat"] * 3}),
        ("multiple_choice", {"context": ["a"], "question": ["b"] * 2, "options": [["c"]] * 2}),
        ("embedding", {"text_a": ["a"], "text_b": ["b"] * 2}),
    ],
)
def test_inputs_have_as_many_rows(signatures, task, inputs):
    name = "similarity" if task == "embedding" else "serving_default"
    refused(signatures(task)[name], f"{', '.join(inputs)} have as many rows", **inputs)


def sized(name, spec, rows, length):
    """An input of so many rows; each of its other axes is of a length."""
    rank = spec.shape.rank
    shape = [rows, *[2] * (rank - 2), *[length] * (rank > 1)]
    text = serialized_examples(["the cat"])[0] if name == "inputs" else b"the cat"
    return np.full(shape, text if spec.dtype == tf.string else 0, spec.dtype.as_numpy_dtype)


@pytest.mark.parametrize("task", TASKS)
def test_no_rows(signatures, task):
    for signature in signatures(task).values():
        specs = signature.structured_input_signature[1]
        none, one = ({name: sized(name, specs[name], n, 8) for name in specs} for n in (0, 1))
        refused(signature, "at least one", **none)
        signature(**{name: tf.constant(value) for name, value in one.items()})


@pytest.mark.parametrize("task", [task for task in TASKS if task != "preprocessor"])
@pytest.mark.parametrize("length", [0, 65])
def test_rows_without_ids_and_longer_than_the_positions(signatures, config, task, length):
    """Of the mask a whole row is padding: its length counts, and nothing else would be noticed."""
    assert config.max_position_embeddings == 64
    signature = signatures(task)["tokens"]
    specs = signature.structured_input_signature[1]
    given = {name: sized(name, spec, 1, length) for name, spec in specs.items()}
    refused(signature, "input_word_ids are at least one row, of . to 64 ids", **given)


def test_no_options(signatures):
    given = {"context": ["a"], "question": ["b"], "options": tf.zeros([1, 0], tf.string)}
    refused(signatures("multiple_choice")["serving_default"], "options are at least one", **given)


@pytest.mark.parametrize("word", [-1, 10**6])
def test_words_that_are_none(signatures, word):
    """A GPU would look up zeros for them."""
    given = tokens(1, 3, input_word_ids=np.array([[1, word, 1]], np.int32))
    refused(signatures("classifier")["tokens"], "input_word_ids are from 0 to", **given)
