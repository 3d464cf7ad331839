"""This project's SavedModel in one process: times include the overhead of a call from Python, but
not that of TensorFlow Serving's own server."""

import protocol
import tensorflow as tf
from load import Load

_ANSWER = {"classifier": "label", "question_answering": "answer"}


def build(case):
    """The default signature with all its outputs; with `batching`, behind TensorFlow Serving's
    scheduler."""
    import tensorflow_text  # noqa: F401  The graph uses its ops.

    model = tf.saved_model.load(case["saved_model"])
    signature = model.signatures["serving_default"]
    output = _ANSWER[case["task"]]
    names = sorted(signature.structured_input_signature[1])

    def answer(*columns):
        return signature(**dict(zip(names, columns)))

    if case["batching"]:
        answer = tf.nondifferentiable_batch_function(**case["batching"])(answer)
    answer = tf.function(answer, input_signature=[tf.TensorSpec([None], tf.string)] * len(names))

    def ask(rows):
        columns = [[row[name] for row in rows] if len(names) > 1 else rows for name in names]
        return [text.decode() for text in answer(*map(tf.constant, columns))[output].numpy()]

    load = Load(case, ask)
    load.model = model  # Its variables live only as long as the model is referenced.
    return load


protocol.serve(build)
