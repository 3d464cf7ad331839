"""Classify asks the signature that is made for it, and names it otherwise."""

import numpy as np
import pytest
from tensorflow.core.protobuf import meta_graph_pb2

from export.server.errors import ServingError
from export.server.inference import classify


def definition(inputs, outputs):
    signature = meta_graph_pb2.SignatureDef()
    for name in inputs:
        signature.inputs[name].name = name
    for name in outputs:
        signature.outputs[name].name = name
    return signature


class Model:
    """A stand-in for a loaded version, which answers with what it is asked."""

    name = "topics"

    def __init__(self, **signatures):
        self.signature_defs = signatures

    def signature_def(self, signature):
        return self.signature_defs[signature or "serving_default"]

    def predict(self, signature, inputs):
        self.asked = signature, inputs
        rows = len(inputs["inputs"])
        return {"classes": np.full([rows, 2], b"c", object), "scores": np.arange(2 * rows)}


FITTING = definition(["inputs"], ["classes", "scores"])


@pytest.mark.parametrize("name, asked", [("classify", "classify"), ("", "")])
def test_examples_become_classes_and_scores(name, asked):
    model = Model(classify=FITTING, serving_default=FITTING)
    classes, scores = classify(model, name, [b"one", b"two"])
    assert classes.tolist() == [[b"c", b"c"]] * 2 and scores.tolist() == [0, 1, 2, 3]
    signature, inputs = model.asked
    assert signature == asked and set(inputs) == {"inputs"}
    assert inputs["inputs"].dtype == object and inputs["inputs"].tolist() == [b"one", b"two"]


@pytest.mark.parametrize(
    "inputs, outputs",
    [
        (["text"], ["classes", "scores"]), (["inputs", "more"], ["classes", "scores"]),
        (["inputs"], ["classes", "scores", "more"]), ([], []),
    ],
)  # fmt: skip
def test_other_signatures_are_refused_and_those_that_fit_named(inputs, outputs):
    other = definition(inputs, outputs)
    with pytest.raises(ServingError, match=r"Signature 'x' of model 'topics' .* are: none\.") as e:
        classify(Model(x=other), "x", [b"one"])
    assert e.value.code == "INVALID_ARGUMENT"
    model = Model(serving_default=other, a=FITTING, b=other, c=FITTING)
    with pytest.raises(ServingError, match=r"Signature 'serving_default' .* These are: a, c\."):
        classify(model, "", [b"one"])
