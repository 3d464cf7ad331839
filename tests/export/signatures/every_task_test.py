"""The list that every task of export is held to."""

import json
import os

import pytest

from export import saved_model
from export.client import predict_rows
from export.predict import format_row
from export.tasks import TASKS

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
every_task = pytest.mark.parametrize("task", TASKS)


def test_every_task_is_in_the_table():
    assert list(CONTRACT) == list(TASKS)


@every_task
def test_signatures(exports, task):
    default, others, _ = CONTRACT[task]
    found = exports.results[task].signatures
    assert set(found) == {"serving_default"} | others
    assert set(found["serving_default"]["inputs"]) == default
    if "tokens" in found:
        assert set(found["tokens"]["inputs"]) >= TOKENS
    for name, method in (("classify", {"classes", "scores"}), ("regress", {"outputs"})):
        if name in found:
            assert set(found[name]["inputs"]) == {"inputs"}
            assert set(found[name]["outputs"]) == method


@every_task
def test_every_output_has_a_row_for_each_text(exports, task):
    """TF Serving splits batches by the first dimension."""
    for signature in exports.results[task].signatures.values():
        for spec in (*signature["inputs"].values(), *signature["outputs"].values()):
            assert "[?" in spec


@every_task
def test_self_check_warm_up_and_provenance(exports, task):
    result = exports.results[task]
    assert result.warmup_requests == CONTRACT[task][2]
    assert 0 <= result.max_difference <= saved_model.TOLERANCE
    with open(os.path.join(result.path, saved_model.MANIFEST_FILE)) as file:
        manifest = json.load(file)
    assert manifest["task"] == task
    assert manifest["vocabulary_sha256"] == exports.vocabulary.fingerprint
    assert {"model_sha256", "config", "versions", "signatures"} <= set(manifest)


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


@every_task
def test_the_client_asks_and_prints(exports, task):
    asked, seen = ROWS.get(task, ({"text": "the cat"}, "the cat"))
    [row] = predict_rows(exports.base(task), [asked])
    assert seen in format_row(asked, row)
    assert json.loads(json.dumps(row)) == row
