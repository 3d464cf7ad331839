"""A model of a few operations, and a server in this process that serves it."""

import contextlib
import dataclasses
import shutil

import pytest
import tensorflow as tf

from export.server.models import ModelConfig, ModelStore
from export.server.refusals import Limits

LABELS = ("short", "long")
LIMITS = Limits(max_request_bytes=200_000, max_batch_size=64, max_text_bytes=2000)


class Tiny(tf.Module):
    """Lengths of texts, in all the forms that TF Serving knows and with the inputs of every task of
    export; `bias` tells versions apart."""

    def __init__(self, bias=0):
        super().__init__()
        self.bias = tf.Variable(float(bias))

    def _scores(self, text):
        length = tf.cast(tf.strings.length(text), tf.float32)
        return tf.stack([10 - length, length], axis=1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def text(self, text):
        scores = self._scores(text)
        return {"scores": scores, "label": tf.gather(tf.constant(LABELS), tf.argmax(scores, 1)),
                "version": tf.fill(tf.shape(text), self.bias)}  # fmt: skip

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32, name) for name in ("ids", "mask")]
    )
    def numbers(self, ids, mask):
        return {"sum": tf.reduce_sum(ids * mask, axis=1), "tenth": tf.gather(tf.range(10), ids)}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name) for name in ("text_a", "text_b")]
    )
    def text_pair(self, text_a, text_b):
        lengths = tf.strings.length(text_a), tf.strings.length(text_b)
        return {"value": tf.cast(lengths[0] - lengths[1], tf.float32)}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name) for name in ("question", "context")]
    )
    def answer(self, question, context):
        length = tf.minimum(tf.strings.length(question), tf.strings.length(context))
        return {"answer": tf.strings.substr(context, 0 * length, length), "end": length}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "context"),
            tf.TensorSpec([None], tf.string, "question"),
            tf.TensorSpec([None, None], tf.string, "options"),
        ]
    )
    def choose(self, context, question, options):
        choice = tf.argmax(tf.strings.length(options), axis=1, output_type=tf.int32)
        return {"choice": choice, "option": tf.gather(options, choice, batch_dims=1)}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.string, "words")])
    def tag(self, words):
        lengths = tf.strings.length(words)
        return {"labels": tf.strings.as_string(lengths), "starts": tf.cumsum(lengths, axis=1)}

    def _texts(self, inputs):
        return tf.io.parse_example(inputs, {"text": tf.io.FixedLenFeature([], tf.string)})["text"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs):
        scores = self._scores(self._texts(inputs))
        return {"classes": tf.tile(tf.constant([LABELS]), [tf.shape(scores)[0], 1]),
                "scores": scores}  # fmt: skip

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs):
        return {"outputs": self._scores(self._texts(inputs))[:, 1:]}


def save_tiny(path, bias=0):
    """Writes a version of the model."""
    module = Tiny(bias)
    signatures = {"serving_default": module.text, "numbers": module.numbers,
                  "text_pair": module.text_pair, "answer": module.answer,
                  "choose": module.choose, "words": module.tag,
                  "classify": module.classify, "regress": module.regress}  # fmt: skip
    tf.saved_model.save(module, str(path), signatures=signatures)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A folder with the versions 1 and 2."""
    folder = tmp_path_factory.mktemp("tiny")
    for version in (1, 2):
        save_tiny(folder / str(version), version)
    return folder


@dataclasses.dataclass(frozen=True)
class Running:
    """A server in this process: its addresses, store, monitor and model folder."""

    rest: str
    grpc: str
    store: object
    monitor: object
    folder: object


def store_of(folder, **settings):
    """The loaded store of a folder's model under the name `m`; settings are of `ModelConfig`."""
    store = ModelStore([ModelConfig("m", str(folder), **settings)])
    store.load()
    return store


@contextlib.contextmanager
def serving(folder, limits):
    """A server of a folder's versions 1 and 2 under the name `tiny`, on free ports of loopback."""
    from export.server.grpc_service import create_server
    from export.server.listeners import RestServer
    from export.server.monitoring import Monitor
    from export.server.rest import create_app

    config = ModelConfig("tiny", str(folder), 2, labels={"stable": 1, "canary": 2, "gone": 9})
    store = ModelStore([config], 0.05, limits)
    store.load()
    monitor = Monitor(store.names())
    rest = RestServer(create_app(store, monitor), "127.0.0.1", 0, limits)
    rpc, grpc_port = create_server("127.0.0.1", 0, store, monitor)
    rest.start()
    rpc.start()
    yield Running(f"http://127.0.0.1:{rest.port}", f"127.0.0.1:{grpc_port}", store, monitor, folder)
    rest.stop()
    rpc.stop(0).wait()


@pytest.fixture(scope="module")
def running(tiny, tmp_path_factory):
    """A server with small limits, and a model folder that tests may change."""
    folder = tmp_path_factory.mktemp("served") / "tiny"
    shutil.copytree(tiny, folder)
    with serving(folder, LIMITS) as running:
        yield running
