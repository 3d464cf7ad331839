"""The list that every task of export is held to."""

import json
import os

import numpy as np
import pytest

from export import saved_model
from export.client import predict_rows
from export.encoding import encode_batch
from export.predict import format_row
from export.probes import serialized_examples, text_array
from export.tasks import TASKS
from tests.export.conftest import assert_same_answer

TOKENS = {"input_word_ids", "input_mask", "input_type_ids"}
# Task -> inputs of serving_default, further signatures and number of warm-up requests.
CONTRACT = {
    "classifier": ({"text"}, {"text_pair", "tokens", "classify"}, 3),
    "regression": ({"text"}, {"text_pair", "tokens", "regress"}, 3),
    "masked_lm": ({"text"}, {"tokens"}, 1),
    "question_answering": ({"question", "context"}, {"tokens"}, 1),
    "multiple_choice": ({"context", "question", "options"}, {"tokens"}, 1),
    "tagging": ({"text"}, {"words", "tokens"}, 2),
    "embedding": ({"text"}, {"similarity", "tokens"}, 2),
    "replaced_tokens": ({"text"}, {"tokens"}, 1),
    "encoder": (TOKENS, {"tokens"}, 0),
    "preprocessor": ({"text"}, set(), 1),
}


def test_every_task_is_in_the_table():
    assert list(CONTRACT) == list(TASKS)


# Task -> a row of inputs for serving_default, and what people see of the answer.
ROWS = {
    "masked_lm": ({"text": "the [MASK]"}, "mask 1"),
    "question_answering": ({"question": "who", "context": "the cat runs in paris"}, "who | the"),
    "multiple_choice": (
        {"context": "the cat", "question": "who", "options": ["cat", "dog"]},
        "the cat | who",
    ),
    "tagging": ({"text": "the cat"}, "  cat"),
    "encoder": ({name: [1, 1] for name in TOKENS}, "sequence_output"),
}


@pytest.mark.parametrize("task", TASKS)
def test_signatures_manifest_and_client(exports, task):
    default, others, warmup_requests = CONTRACT[task]
    result = exports.results[task]
    found = result.signatures
    assert set(found) == {"serving_default"} | others
    assert set(found["serving_default"]["inputs"]) == default
    if "tokens" in found:
        assert set(found["tokens"]["inputs"]) >= TOKENS
    for name, method in (("classify", {"classes", "scores"}), ("regress", {"outputs"})):
        if name in found:
            assert set(found[name]["inputs"]) == {"inputs"}
            assert set(found[name]["outputs"]) == method
    for signature in found.values():  # TF Serving splits batches by the first dimension.
        for spec in (*signature["inputs"].values(), *signature["outputs"].values()):
            assert "[?" in spec

    assert result.warmup_requests == warmup_requests
    assert 0 <= result.max_difference <= 1e-5
    with open(os.path.join(result.path, saved_model.MANIFEST_FILE)) as file:
        manifest = json.load(file)
    assert manifest["task"] == task
    assert manifest["vocabulary_sha256"] == exports.vocabulary.fingerprint
    assert {"model_sha256", "config", "version", "versions", "signatures"} <= set(manifest)

    asked, seen = ROWS.get(task, ({"text": "the cat"}, "the cat"))
    [row] = predict_rows(exports.base(task), [asked])
    assert seen in format_row(asked, row)
    assert json.loads(json.dumps(row)) == row


# Rows of unlike lengths, by the name of an input.
FIRST = ("the [MASK] cat in paris", "every man who looked at the [MASK] [MASK] " * 5, "a [MASK]")
SECOND = ("dog house river water", "the river runs slowly, " * 30, "the largest value of 2010")
COLUMNS = {
    **dict.fromkeys(("text", "text_a"), text_array(FIRST)),
    **dict.fromkeys(("text_b", "context"), text_array(SECOND)),
    "question": text_array(FIRST),
    "options": np.array([[b"cat", b"a dog"], [b"water " * 30, b"the"], [b"", b"paris"]], object),
    "words": np.array([b"the cat  ".split(b" "), [b"dog"] * 4, [b"a"] + [b""] * 3], object),
    "inputs": serialized_examples(FIRST),
}
FILLERS = {"f": 0, "i": -1, "O": b""}


def columns_of(exports, task, signature):
    """Rows of unlike lengths for the inputs of a signature: arrays by name."""
    inputs = exports.results[task].signatures[signature]["inputs"]
    if "input_mask" not in inputs:
        return {name: COLUMNS[name] for name in inputs}
    found = encode_batch(exports.vocabulary, FIRST, 48, SECOND)
    if inputs["input_mask"].count("?") == 3:  # A second option beside each.
        return {name: np.stack([each, each - (each > 5)], 1) for name, each in found.items()}
    found["impossible_positions"] = 1 - found["input_type_ids"]
    found["masked_lm_positions"] = np.array([[1, 2], [3, 4], [2, 0]])
    return {name: found[name] for name in inputs}


def alone(columns, row):
    """A row without the others, and without what made it as long as they are."""
    found = {name: each[row : row + 1] for name, each in columns.items()}
    filled = found.get("input_mask", found.get("words"))
    if filled is None:
        return found
    length = filled.astype(bool).reshape(-1, filled.shape[-1]).any(axis=0).sum()
    return {
        name: each[..., :length] if each.shape == filled.shape else each
        for name, each in found.items()
    }


@pytest.mark.parametrize(
    ("task", "signature"),
    [
        (task, signature)
        for task, (_, others, _) in CONTRACT.items()
        for signature in ("serving_default", *sorted(others))
    ],
)
def test_an_answer_does_not_depend_on_its_neighbors(exports, every_store, task, signature):
    """Longer and shorter ones; what makes all rows as long as the longest is a filler."""
    predict, columns = every_store.get(task).predict, columns_of(exports, task, signature)
    together = predict(signature, columns)
    for row in range(len(FIRST)):
        for name, value in predict(signature, alone(columns, row)).items():
            found = together[name][row : row + 1].copy()
            own = tuple(map(slice, value.shape))
            assert_same_answer({name: found[own]}, {name: value})
            found[own] = filler = FILLERS[value.dtype.kind]
            assert (found == filler).all() or set(columns) >= TOKENS, name
