"""Small requests that ask for much: graphs refuse them, or read them a few rows at a time."""

import numpy as np
import pytest
import tensorflow as tf

from export.graphs.windows import MOST_WINDOWS
from export.probes import example_of, serialized_examples
from export.signatures.masked_lm import MASKS_AT_A_TIME, MOST_POSITIONS
from export.signatures.multiple_choice import MOST_FILLED_BYTES, MOST_SEQUENCES
from export.signatures.tagging import MOST_WORDS
from export.tasks import TASKS
from tests.export.conftest import assert_same_answer

pytestmark = pytest.mark.one_stack


def refused(signature, sentence, **inputs):
    with pytest.raises(tf.errors.InvalidArgumentError, match=sentence):
        signature(**{name: tf.constant(value) for name, value in inputs.items()})


def at_positions(places):
    """The inputs of as many rows of three tokens, with positions of masks."""
    ones, places = np.ones([len(places), 3], np.int32), np.array(places, np.int32)
    names = ("input_word_ids", "input_mask", "input_type_ids")
    return {**dict.fromkeys(names, ones), "masked_lm_positions": places}


def choices(context, question, options):
    return {"context": context, "question": question, "options": options}


ROWS = MOST_SEQUENCES // 64 + 1
BYTES = f"at most {MOST_FILLED_BYTES} bytes"
NO_PLACE = "masked_lm_positions must be from 0"  # A neighbor would answer for it.
# What is asked for -> task, signature, the sentence, and the inputs.
REFUSED = {
    "a place after all": ("masked_lm", "tokens", NO_PLACE, at_positions([[0], [3]])),
    "a place before all": ("masked_lm", "tokens", NO_PLACE, at_positions([[0], [-1]])),
    "masks": (
        *("masked_lm", "tokens", f"masked_lm_positions must be at most {MOST_POSITIONS} in"),
        at_positions(np.zeros([2, MOST_POSITIONS // 2 + 1])),
    ),
    "words": (
        *("tagging", "serving_default", f"words of the longest row must be at most {MOST_WORDS}"),
        {"text": ["a " * (MOST_WORDS // 16 + 1)] + ["cat"] * 15},
    ),
    "windows": (  # Of 48 tokens with a stride of 8: each context makes about 150.
        *("question_answering", "serving_default", f"more than {MOST_WINDOWS} windows"),
        {"question": ["who"] * 4, "context": ["cat dog " * 625] * 4},
    ),
    "a question with each option": (
        *("multiple_choice", "serving_default", BYTES),
        choices(["cat"], ["_" * (MOST_FILLED_BYTES // 64)], [["a"] * 64]),
    ),
    "an option in every blank": (  # 5,000 blanks times 5,000 letters: 25 MB of 10 kB.
        *("multiple_choice", "serving_default", BYTES),
        choices(["cat"], ["_\uff3f" * 2500], [["a" * 5000]]),
    ),
    "options of all rows": (
        *("multiple_choice", "serving_default"),
        f"rows times options must be at most {MOST_SEQUENCES}",
        choices(["cat"] * ROWS, ["a"] * ROWS, [["b"] * 64] * ROWS),
    ),
    "no option": (
        *("multiple_choice", "serving_default", "at least one option"),
        choices(["a"], ["b"], np.zeros([1, 0], object)),
    ),
    "fewer contexts": (
        *("multiple_choice", "serving_default", "context, question, options must have the same"),
        choices(["a"], ["b"] * 2, [["c"]] * 2),
    ),
    "more contexts": (
        *("question_answering", "serving_default", "question, context must have the same number"),
        {"question": ["who"] * 2, "context": ["cat"] * 3},
    ),
    "more second texts": (
        *("embedding", "similarity", "text_a, text_b must have the same number"),
        {"text_a": ["a"], "text_b": ["b"] * 2},
    ),
    "an example without a text": (
        *("classifier", "classify", "text"),
        {"inputs": [example_of({"text_b": "b"}).SerializeToString()]},
    ),
}


@pytest.mark.parametrize(("task", "name", "sentence", "inputs"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(signatures, task, name, sentence, inputs):
    refused(signatures(task)[name], sentence, **inputs)


def test_a_text_of_many_masks_fails_nobody_elses(answers):
    """30 rows, filled up to 46 masks: more than are computed at once."""
    texts = ["[MASK]" * 46, *["the [MASK] is a [MASK]"] * 29]
    assert len(texts) * 46 > MASKS_AT_A_TIME
    found = answers("masked_lm", text=texts)
    assert found.pop("num_masks").tolist() == [46, *[2] * 29]
    alone = answers("masked_lm", text=texts[-1:])
    expected = {name: alone[name][0] for name in found}
    assert_same_answer({name: each[-1, :2] for name, each in found.items()}, expected, 1e-6)


def test_many_options_as_few(answers):
    """72 sequences, more than are read at once."""
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
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return answers("multiple_choice", **columns)["probabilities"]

    alone = np.concatenate([ask([row]) for row in rows])
    np.testing.assert_allclose(ask(rows), alone, atol=1e-5)


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
def test_tokens_that_are_none(signatures, config, task):
    """Of a mask of zeros a whole row is padding: nothing but its length would be noticed."""
    signature = signatures(task)["tokens"]
    specs = signature.structured_input_signature[1]
    assert config.max_position_embeddings == 64
    for length in (0, 65):
        given = {name: sized(name, spec, 1, length) for name, spec in specs.items()}
        refused(signature, "input_word_ids must have at least one row, of . to 64 ids", **given)
    given = {name: sized(name, spec, 1, 8) for name, spec in specs.items()}
    changes = [("input_mask", 7, "must be 0 or 1")]
    changes += [("input_type_ids", value, "must be from 0 to 1") for value in (2, -1)]
    changes += [("impossible_positions", -1, "must be 0 or 1")] * ("impossible_positions" in given)
    for name, value, sentence in changes:
        refused(signature, f"{name} {sentence}", **given | {name: given[name] + value})
