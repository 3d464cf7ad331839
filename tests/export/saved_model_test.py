"""What lies on disk after an export, and that a bad one never gets its name."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.models import (
    AlbertClassifier,
    AlbertPretrainer,
    AlbertSpanLabeler,
    AlbertTokenClassifier,
)
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer
from export import probes, saved_model
from export.comparison import Comparison
from export.tasks import TASKS, export_model
from tests.export.conftest import EXPORTED, rows

WORDPIECE = Path(__file__).parents[1] / "goldens" / "wordpiece" / "vocab.txt"

# Everything here is core TensorFlow of 2.12 at the latest, but for the ops of TF Text, which every
# TF Serving since 2.2 has. TFText>RoundRobinTrim, for one, is missing in 2.12 - 2.19.
TEXT_OPS = {
    "NormalizeUTF8",
    "SentencepieceOp",
    "SentencepieceTokenizeOp",
    "SentencepieceTokenizeWithOffsetsOp",
    "WordpieceTokenizeWithOffsets",
}
CORE_OPS = """
AddN AddV2 All Any ArgMax Assert AssignVariableOp BatchMatMulV2 BiasAdd BroadcastArgs BroadcastTo
Cast ConcatV2 Const Cumprod Cumsum DenseBincount DisableCopyOnRead EnsureShape Equal Exp ExpandDims
Fill FloorDiv FloorMod GatherNd GatherV2 Greater GreaterEqual HashTableV2 Identity IdentityN If Less
LessEqual LogSoftmax LogicalAnd LogicalNot LogicalOr LookupTableFindV2 LookupTableImportV2
LowerBound MatMul Max Maximum Mean MergeV2Checkpoints Min Minimum Mul Neg NoOp NotEqual OneHot
OnesLike Pack Pad ParseExampleV2 PartitionedCall Placeholder Pow Prod RaggedGather RaggedRange
RaggedTensorToTensor RandomUniform Range ReadVariableOp RealDiv Reshape ResourceGather RestoreV2
Rsqrt SaveV2 ScatterNd Select SelectV2 Shape ShardedFilename Sigmoid SigmoidGrad Size Softmax Split
SplitV Square Squeeze StatefulPartitionedCall StatelessIf StatelessWhile StaticRegexFullMatch
StaticRegexReplace StridedSlice StringJoin StringLength StringLower StringSplitV2 Sub Substr Sum
Tanh TensorListConcatV2 TensorListReserve TensorListSetItem Tile TopKV2 Transpose UnicodeDecode
UnicodeDecodeWithOffsets UnicodeEncode UnicodeTranscode Unique Unpack UnsortedSegmentJoin
UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentSum UpperBound VarHandleOp VarIsInitializedOp
Where While ZerosLike
"""


def ops_of(path):
    graph = saved_model.meta_graph(path).graph_def
    used = {node.op for node in graph.node}
    return used | {node.op for function in graph.library.function for node in function.node_def}


@pytest.mark.parametrize("task", TASKS)
def test_the_graph_suits_stock_servers(exports, task):
    graph = saved_model.meta_graph(exports.paths[task]).graph_def
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    used = ops_of(exports.paths[task])
    assert not sorted(used - TEXT_OPS - set(CORE_OPS.split()))
    for node in nodes:  # Servers before 2.13 do not know the attribute.
        assert not node.attr["resize_if_index_out_of_bounds"].b, node.name
    assert not any(function.attr["_XlaMustCompile"].b for function in functions)
    assert b"/tmp/" not in graph.SerializeToString(), "a path of this machine"
    assert os.path.dirname(exports.base(task)).encode() not in graph.SerializeToString()
    if task == "encoder":  # It loads without tensorflow_text, and is trained.
        assert not used & TEXT_OPS
        return
    assert [node.op for node in nodes].count("SentencepieceOp") == 1, "one vocabulary"
    for function in functions:
        # Layers that share weights join them once, of kernels and of biases; or each would scale
        # and join them again, in each request.
        reads = {node.name for node in function.node_def if node.op == "ReadVariableOp"}
        joins = [
            node.name
            for node in function.node_def
            if node.op == "ConcatV2" and {each.split(":")[0] for each in node.input} & reads
        ]
        assert len(joins) in (0, 2), (function.signature.name, joins)


@pytest.mark.parametrize(
    "task", rows(["classifier", "masked_lm", "question_answering", "tagging"], "masked_lm")
)
def test_wordpiece_vocabularies_go_along_too(config, tmp_path, task):
    """The exporter itself compares what the graph answers with Keras."""
    tokenizer = load_tokenizer(str(WORDPIECE))
    config = config.replace(vocab_size=tokenizer.vocab_size)
    model = {
        "classifier": lambda: AlbertClassifier(config, 2),
        "masked_lm": lambda: AlbertPretrainer(config),
        "question_answering": lambda: AlbertSpanLabeler(config),
        "tagging": lambda: AlbertTokenClassifier(config, 2),
    }[task]()
    settings = dataclasses.asdict(tokenizer.settings)
    metadata = {"max_query_length": 9, "doc_stride": 20}
    native.save(model, str(tmp_path / "model"), metadata, str(WORDPIECE), settings)
    exported = export_model(str(tmp_path / "model"), str(tmp_path / task), task)
    assert (tmp_path / task / "1" / "assets" / "vocab.txt").read_bytes() == WORDPIECE.read_bytes()
    assert not sorted(ops_of(exported.path) - TEXT_OPS - set(CORE_OPS.split()))


@pytest.mark.parametrize(
    ("task", "model"), [("classifier", "classifier"), ("masked_lm", "pretrainer")]
)
def test_shared_weights_are_stored_once(exports, task, model):
    weights = sum(4 * variable.shape.num_elements() for variable in exports.models[model].variables)
    files = Path(exports.paths[task], "variables").glob("*.data-*")
    stored = sum(file.stat().st_size for file in files)
    # The rest is the checkpoint's own object graph.
    assert weights <= stored <= weights * 1.05 + 20_000


@pytest.mark.parametrize(
    "task",
    ["masked_lm", *(pytest.param(t, marks=pytest.mark.long) for t in TASKS if t != "masked_lm")],
)
def test_two_exports_of_one_folder_have_the_same_hashes(exports, model_dirs, tmp_path, task):
    """The first was made in the middle of all others."""
    first = exports.results[task]
    second = export_model(model_dirs[EXPORTED[task]], str(tmp_path / "again"), task)
    assert second.graph_sha256 == first.graph_sha256
    assert second.weights_sha256 == first.weights_sha256


def test_the_hash_leaves_out_numbers_of_names_but_not_of_labels(tmp_path):
    def hashed(*labels: str) -> str:
        module = tf.Module()
        module.serve = tf.function(lambda: {"labels": tf.constant(labels)}, input_signature=[])
        folder = str(tmp_path / "-".join(labels))
        tf.saved_model.save(module, folder, signatures={"serving_default": module.serve})
        return saved_model.graph_sha256(folder)

    first = hashed("topic_1", "topic_2")
    assert first != hashed("topic_2", "topic_1")
    (tmp_path / "topic_1-topic_2").rename(tmp_path / "first")
    assert first == hashed("topic_1", "topic_2")  # Traced later in this process.


def test_hashes_of_different_exports_differ(exports):
    graphs = {exports.results[task].graph_sha256 for task in TASKS}
    assert len(graphs) == len(TASKS)
    classifier, regression = (exports.results[task] for task in ("classifier", "regression"))
    assert classifier.weights_sha256 != regression.weights_sha256


def test_files_that_make_the_folder_self_contained(exports, vocabulary_dir):
    assets = Path(exports.paths["classifier"], "assets")
    vocabulary = ["spiece.model", "tokenizer_settings.json"]
    names = sorted(path.name for path in assets.iterdir())
    assert names == ["albert_config.json", "labels.txt", *vocabulary]
    for name in vocabulary:
        assert (assets / name).read_bytes() == (vocabulary_dir / name).read_bytes()
    assert (assets / "labels.txt").read_text("utf-8") == "red\ngreen\nblå\n"


@pytest.fixture
def tiny_module():
    """A module that doubles, with a probe that it satisfies."""

    class Doubler(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
        def double(self, x):
            return {"y": 2.0 * x}

        def signatures(self):
            return {"serving_default": self.double}

    values = np.array([1.0, 2.0], np.float32)
    return Doubler(), probes.Probe("serving_default", {"x": values}, {"y": 2 * values})


def write_version(module, folder, version, asked):
    comparison = Comparison("float32", 0, {})
    return saved_model.write_version(module, folder, version, asked, {}, comparison)


def test_versions_count_up_and_an_existing_one_is_refused(tiny_module, tmp_path):
    module, probe = tiny_module
    folder = str(tmp_path / "doubler")
    names = [
        os.path.basename(write_version(module, folder, version, [probe]).path)
        for version in (None, None, 10, None)
    ]
    assert names == ["1", "2", "10", "11"]
    with pytest.raises(UserError, match="10 exists already"):
        write_version(module, folder, 10, [probe])
    with pytest.raises(UserError, match="--version=0"):
        write_version(module, folder, 0, [probe])
    assert sorted(os.listdir(folder)) == ["1", "10", "11", "2"]


def test_a_wrong_answer_leaves_nothing_behind(tiny_module, tmp_path):
    module, probe = tiny_module
    bad = dataclasses.replace(probe, expected={"y": np.array([2.001, 4.0], np.float32)})
    with pytest.raises(UserError, match="does not answer as the Keras model"):
        write_version(module, str(tmp_path), None, [probe, bad])
    assert os.listdir(tmp_path) == []


def test_a_folder_that_appears_meanwhile_is_not_overwritten(tiny_module, tmp_path, monkeypatch):
    module, probe = tiny_module
    original = saved_model.weights_sha256

    def race(directory):
        (tmp_path / "1").mkdir()
        (tmp_path / "1" / "theirs").write_text("x")
        return original(directory)

    monkeypatch.setattr(saved_model, "weights_sha256", race)
    with pytest.raises(UserError, match="just written by another process"):
        write_version(module, str(tmp_path), None, [probe])
    assert os.listdir(tmp_path) == ["1"]
    assert os.listdir(tmp_path / "1") == ["theirs"]
