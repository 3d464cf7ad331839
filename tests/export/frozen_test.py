"""Exports whose weights are constants of the graph: every task, and what is refused."""

import json
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from export import tasks
from export.saved_model import MANIFEST_FILE, meta_graph
from export.tasks import TASKS, export_model
from tests.export.conftest import EXPORTED, assert_same_answer
from tests.export.saved_model_test import CORE_OPS, TEXT_OPS, ops_of
from tests.export.signatures.every_task_test import columns_of

# The one that every run of the tests freezes.
_SHORT = ("classifier",)
_VARIABLE = "VarHandleOp"
_FROZEN = [
    pytest.param(task, marks=() if task in _SHORT else pytest.mark.long)
    for task in TASKS
    if task not in ("encoder", "preprocessor")
]


@pytest.mark.parametrize("task", _FROZEN)
def test_answers_and_size_are_those_of_variables(exports, signatures, model_dirs, tmp_path, task):
    folder = str(tmp_path / task)
    frozen = export_model(model_dirs[EXPORTED[task]], folder, task, freeze=True)
    assert frozen.signatures == exports.results[task].signatures
    found = tf.saved_model.load(frozen.path).signatures
    for name, signature in signatures(task).items():
        columns = columns_of(exports, task, name)
        specs = found[name].structured_input_signature[1]
        asked = {each: tf.constant(value, specs[each].dtype) for each, value in columns.items()}
        assert_same_answer(found[name](**asked), signature(**asked), 1e-6)
    assert not sorted(ops_of(frozen.path) - TEXT_OPS - set(CORE_OPS.split()))
    nodes = meta_graph(frozen.path).graph_def.node
    left = {node.attr["dtype"].type for node in nodes if node.op == _VARIABLE}
    assert left <= {tf.string.as_datatype_enum}, "names of assets, no weights"
    sizes = [
        sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
        for path in (frozen.path, exports.paths[task])
    ]
    assert sizes[0] < 1.02 * sizes[1], "one copy of the weights"
    manifest = json.loads(Path(frozen.path, MANIFEST_FILE).read_text())
    assert manifest["comparison"]["frozen"] is True
    assert manifest["weights_bytes"] == manifest["comparison"]["float32_bytes"]


def test_what_is_refused(model_dirs, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "float32_bytes", lambda model: 2_100_000_000)
    for task, others, sentence in (
        ("encoder", {}, "--freeze does not go with --task=encoder: the encoder stays"),
        ("preprocessor", {}, "--task=preprocessor: it has no weights"),
        ("classifier", {"precision": "int8"}, "in --precision=int8 each request"),
        ("classifier", {}, r"--freeze: .* take 2.10 GB, .* limited to 2 GB"),
    ):
        with pytest.raises(UserError, match=sentence):
            folder = model_dirs[EXPORTED[task]]
            export_model(folder, str(tmp_path / "out"), task, freeze=True, **others)
    assert not list(tmp_path.iterdir())
