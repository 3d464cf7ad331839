"""Models for LiteRT, run in its own interpreter."""

import itertools
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.models import AlbertClassifier
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import TokenizerSettings
from export.encoding import encode_batch
from tests.export.conftest import EXPORTED, LABELS, MAX_SEQ_LENGTH, Made, rows

pytest.importorskip(
    "ai_edge_litert", reason='SKIPPED: LITERT IS NOT INSTALLED (pip install "albert-tf[litert]")'
)

from export.litert import LITERT_TASKS, PRECISIONS, Runner, convert, export_litert

# Every task in one precision, in turn, and two of them in all.
PAIRS = dict.fromkeys(
    [
        *zip(LITERT_TASKS, itertools.cycle(PRECISIONS)),
        *itertools.product(["classifier", "question_answering"], PRECISIONS),
    ]
)
LARGEST = {"float32": 1e-5, "float16": 0.02, "int8": 0.3}
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
DOCS = Path(__file__).parents[2] / "docs" / "litert.md"


@pytest.fixture(scope="module")
def exported(model_dirs, tmp_path_factory):
    """(task, precision) -> its export."""
    root = tmp_path_factory.mktemp("litert")

    def export(pair):
        return export_litert(model_dirs[EXPORTED[pair[0]]], str(root / "_".join(pair)), *pair)

    return Made(export)


@pytest.mark.parametrize(
    ("task", "precision"), rows(PAIRS, ("classifier", "float32"), ("question_answering", "int8"))
)
def test_answers_are_those_of_the_model(exported, task, precision, capfd):
    found = exported[task, precision]
    printed = "".join(capfd.readouterr())
    assert "Summary" not in printed and "XNNPACK" not in printed
    assert set(found.inputs) >= {"input_word_ids", "input_mask", "input_type_ids"}
    assert set(found.outputs) >= set(found.comparison.differences)
    assert set(found.inputs.values()) <= {"int32[?, ?]", "int32[?, ?, ?]"}
    differences = found.comparison.differences
    if precision != "float32":  # Ends follow their starts, which may come in another order.
        differences = {name: each for name, each in differences.items() if "end_top" not in name}
    assert differences and max(differences.values()) <= LARGEST[precision]
    assert (max(differences.values()) > 1e-5) == (precision != "float32")
    with open(os.path.join(found.path, "export_manifest.json")) as file:
        manifest = json.load(file)
    assert (manifest["task"], manifest["model_bytes"]) == (task, found.model_bytes)
    assert os.path.getsize(os.path.join(found.path, "model.tflite")) == found.model_bytes


@pytest.mark.table
def test_smaller_is_smaller(exported):
    sizes = [exported["classifier", precision].model_bytes for precision in PRECISIONS]
    assert sizes[0] > sizes[1] > sizes[2]


def test_rows_of_any_number_and_length(exported, keras_models, vocabulary):
    """Padding changes nothing, and neither do other rows."""
    path = os.path.join(exported["classifier", "float32"].path, "model.tflite")
    runner = Runner(Path(path).read_bytes())
    model = keras_models["classifier"]
    for texts in (["a cat"], ["the dog runs in 2010, slowly", "a", ""]):
        inputs = encode_batch(vocabulary, texts, MAX_SEQ_LENGTH)
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        answer = runner(**tensors)
        np.testing.assert_allclose(answer["logits"], model(tensors), atol=1e-5)


def test_the_example_of_the_documentation(exported, vocabulary, capsys):
    """It makes the ids of training, and answers as the model does."""
    (code,) = EXAMPLE.findall(DOCS.read_text(encoding="utf-8"))
    assert len([line for line in code.splitlines() if line]) <= 20
    folder = exported["classifier", "float32"].path
    assert '"phone/topics"' in code
    names: dict = {}
    exec(code.replace('"phone/topics"', repr(folder)), names)
    for text in ("Café, in 2010, 3.0,  1,000, naïve", "the cat", ""):
        inputs = encode_batch(vocabulary, [text], MAX_SEQ_LENGTH)
        assert names["token_ids"](text) == inputs["input_word_ids"][0].tolist()
    label = capsys.readouterr().out.split()[0]
    assert label == LABELS[int(names["answer"]["logits"].argmax())]


def test_what_cannot_be_exported_is_refused(model_dirs, tmp_path):
    model_dir = model_dirs["classifier"]
    for arguments, pattern in (
        (("classifier", "bfloat16"), "--precision=bfloat16: LiteRT has float32, float16, int8"),
        (("preprocessor",), "--task=preprocessor is not one of classifier"),
        (("tagging",), "--task=tagging needs a model for token_classification"),
    ):
        with pytest.raises(UserError, match=pattern):
            export_litert(model_dir, str(tmp_path / "out"), *arguments)
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="there exists already"):
        export_litert(model_dir, str(tmp_path / "there"), "classifier")
    assert os.listdir(tmp_path) == ["there"]


def test_a_wrong_answer_leaves_nothing_behind(model_dirs, tmp_path, monkeypatch):
    """The graph that is converted is not the one of the model."""

    def convert_another(function, model, precision):
        model.encoder.pooler.bias.assign_add(tf.ones_like(model.encoder.pooler.bias))
        return convert(function, model, precision)

    monkeypatch.setattr("export.litert.convert", convert_another)
    with pytest.raises(UserError, match="LiteRT in float32 does not answer as the Keras model"):
        out = str(tmp_path / "out")
        export_litert(model_dirs["classifier"], out, "classifier", max_seq_length=16)
    assert not list(tmp_path.iterdir())


def test_a_weight_that_the_precision_does_not_hold_is_refused(config, vocabulary_dir, tmp_path):
    model = AlbertClassifier(config, len(LABELS))
    kernel = model.encoder.pooler.kernel
    kernel.assign(tf.tensor_scatter_nd_update(kernel, [[0, 0]], [1e5]))
    metadata = {"max_seq_length": MAX_SEQ_LENGTH, "labels": LABELS}
    vocabulary = str(vocabulary_dir / "spiece.model")
    native.save(model, str(tmp_path / "model"), metadata, vocabulary, vars(TokenizerSettings()))
    with pytest.raises(UserError, match="more than float16's maximum 65504. Use float32"):
        export_litert(str(tmp_path / "model"), str(tmp_path / "out"), "classifier", "float16")
    assert not (tmp_path / "out").exists()
