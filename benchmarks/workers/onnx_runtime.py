"""ONNX Runtime with Hugging Face's PyTorch model, exported."""

import tempfile

import onnxruntime
import protocol
import torch
from huggingface_torch import make_inputs, make_model


def build(case):
    """A forward pass in ONNX Runtime, which has no other passes, and only float32."""
    if case["pass"] == "training" or case["precision"] != "float32":
        raise NotImplementedError("ONNX Runtime: forward pass in float32 only")
    end = "ForSequenceClassification" if case["task"] == "classification" else "Model"
    model = make_model(case, end)
    inputs = make_inputs(protocol.make_batch(case))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        torch.onnx.export(
            model.eval(),
            tuple(inputs.values()),
            path,
            input_names=list(inputs),
            output_names=["output"],
            dynamo=False,
        )
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {name: value.numpy() for name, value in inputs.items()}
    return lambda: session.run(["output"], feeds)


protocol.serve(build)
