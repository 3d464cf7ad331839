"""Correct requests with the inputs of every task of export, and the answers to them.

The answers of the model of conftest.py are lengths, which are known without asking it.
"""

import json

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest, ClassificationResponse
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest, MultiInferenceResponse
from tensorflow_serving.apis.regression_pb2 import RegressionRequest, RegressionResponse

from export.probes import example_of
from tests.export.server.clients import predict_request

LABELS = ("short", "long")
# Path of a version -> its number, which the model answers, too.
VERSIONS = {"": 2, "/versions/1": 1, "/versions/2": 2, "/labels/stable": 1, "/labels/canary": 2}


def texts(rng, count):
    """Texts of at most nine characters, some of which have two or four bytes; no two bests."""
    return ["".join(rng.choice("ab é🤖") for _ in range(rng.randrange(10))) for _ in range(count)]


def size(text):
    return len(text.encode())


def by_text(rng, rows, version):
    found = texts(rng, rows)
    lengths = [size(text) for text in found]
    answer = {
        "scores": [[10.0 - n, float(n)] for n in lengths],
        "label": [LABELS[n > 10 - n] for n in lengths],
        "version": [float(version)] * rows,
    }
    return "", {"text": found}, answer


def by_pair(rng, rows, version):
    first, second = texts(rng, rows), texts(rng, rows)
    difference = [float(size(a) - size(b)) for a, b in zip(first, second)]
    return "text_pair", {"text_a": first, "text_b": second}, {"value": difference}


def by_question(rng, rows, version):
    questions, contexts = texts(rng, rows), ["abcdefghijklmnopqrstuvwxyz" * 4] * rows
    ends = [size(question) for question in questions]
    answer = {"answer": [text[:end] for text, end in zip(contexts, ends)], "end": ends}
    return "answer", {"question": questions, "context": contexts}, answer


def by_options(rng, rows, version):
    count = rng.randrange(1, 5)
    options = [texts(rng, count) for _ in range(rows)]
    choices = [int(np.argmax([size(text) for text in row])) for row in options]
    asked = {"context": texts(rng, rows), "question": texts(rng, rows), "options": options}
    chosen = [row[choice] for row, choice in zip(options, choices)]
    return "choose", asked, {"choice": choices, "option": chosen}


def by_words(rng, rows, version):
    words = [texts(rng, 3) for _ in range(rows)]
    lengths = [[size(word) for word in row] for row in words]
    answer = {"labels": [[str(n) for n in row] for row in lengths],
              "starts": np.cumsum(lengths, axis=1).tolist()}  # fmt: skip
    return "words", {"words": words}, answer


def by_numbers(rng, rows, version):
    ids = [[rng.randrange(10) for _ in range(4)] for _ in range(rows)]
    mask = [[rng.randrange(2) for _ in range(4)] for _ in range(rows)]
    sums = [sum(a * b for a, b in zip(*row)) for row in zip(ids, mask)]
    return "numbers", {"ids": ids, "mask": mask}, {"sum": sums, "tenth": ids}


# Methods on tf.Examples -> classes of request and response.
EXAMPLES = {
    "Classify": (ClassificationRequest, ClassificationResponse),
    "Regress": (RegressionRequest, RegressionResponse),
    "MultiInference": (MultiInferenceRequest, MultiInferenceResponse),
}
PREDICTIONS = (by_text, by_pair, by_question, by_options, by_words, by_numbers)


def rest(rng):
    """(path, body, answer) of a correct request over HTTP."""
    where, version = rng.choice(list(VERSIONS.items()))
    rows = rng.randrange(1, 6)
    path = f"/v1/models/tiny{where}"
    kind = rng.randrange(4)
    if kind == 0:
        return _rest_examples(rng, path, rows)
    signature, inputs, outputs = rng.choice(PREDICTIONS)(rng, rows, version)
    body = {"signature_name": signature} if signature else {}
    # The name of a single input may be left out, and that of a single output is.
    if kind == 1:
        body["inputs"] = next(iter(inputs.values())) if len(inputs) == 1 else inputs
        answer = {"outputs": next(iter(outputs.values())) if len(outputs) == 1 else outputs}
    else:
        body["instances"] = _rows(inputs)
        answer = {"predictions": _rows(outputs)}
    return f"{path}:predict", json.dumps(body).encode(), answer


def _rows(columns):
    if len(columns) == 1:
        return next(iter(columns.values()))
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def _rest_examples(rng, path, rows):
    found = texts(rng, rows)
    verb = rng.choice(("classify", "regress"))
    body = {"signature_name": verb, "examples": [{"text": text} for text in found]}
    if verb == "regress":
        answer = {"results": [float(size(text)) for text in found]}
    else:
        answer = {"results": [[["short", 10.0 - size(t)], ["long", float(size(t))]] for t in found]}
    return f"{path}:{verb}", json.dumps(body).encode(), answer


def rpc(rng):
    """(method, bytes, check of the response's bytes) of a correct call of gRPC."""
    label, version = rng.choice((("", 2), ("stable", 1), ("canary", 2)))
    rows = rng.randrange(1, 6)
    method = rng.choice(("Predict", "Predict", "Predict", *EXAMPLES))
    if method == "Predict":
        signature, inputs, outputs = rng.choice(PREDICTIONS)(rng, rows, version)
        request = predict_request("tiny", signature, inputs=inputs, version_label=label)
        return method, request.SerializeToString(), lambda data: _check_outputs(data, outputs)
    request_class, response_class = EXAMPLES[method]
    found, request = texts(rng, rows), request_class()
    lengths = [size(text) for text in found]
    request.input.example_list.examples.extend(example_of({"text": text}) for text in found)
    if method == "MultiInference":
        for verb in ("classify", "regress"):
            task = request.tasks.add(method_name=f"tensorflow/serving/{verb}")
            _name(task.model_spec, verb, label)
    else:
        _name(request.model_spec, method.lower(), label)

    def check(data):
        response = response_class.FromString(data)
        if method == "MultiInference":
            first, second = response.results
            _check_classes(first.classification_result, lengths)
            _check_numbers(second.regression_result, lengths)
        elif method == "Classify":
            _check_classes(response.result, lengths)
        else:
            _check_numbers(response.result, lengths)

    return method, request.SerializeToString(), check


def _name(spec, signature, label):
    spec.name, spec.signature_name = "tiny", signature
    if label:
        spec.version_label = label


def _check_outputs(data, expected):
    outputs = predict_pb2.PredictResponse.FromString(data).outputs
    assert set(outputs) == set(expected)
    for name, value in expected.items():
        strings = np.array(value).dtype.kind == "U"
        wanted = np.char.encode(value, "utf-8") if strings else np.array(value)
        assert tf.make_ndarray(outputs[name]).tolist() == wanted.tolist(), name


def _check_classes(result, lengths):
    found = [[(each.label, each.score) for each in row.classes] for row in result.classifications]
    assert found == [[("short", 10.0 - n), ("long", float(n))] for n in lengths]


def _check_numbers(result, lengths):
    assert [row.value for row in result.regressions] == lengths
