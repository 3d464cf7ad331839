"""The tensors that the software of each format has for a model, and a check of a written file.

Both lists are written down from that software's source and know nothing of names.py: reading a file
back with the table that wrote it cannot find a tensor that the table forgot.
"""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import huggingface, literal_paths
from albert_tf.errors import UserError

Shapes = dict[str, list[int]]


def huggingface_tensors(config: dict[str, Any]) -> Shapes:
    """Name -> shape of what `save_pretrained` of transformers (4.57, modeling_albert.py) writes.

    config: the content of config.json.
    """
    architecture, hidden = config["architectures"][0], config["hidden_size"]
    embedding, inner = config["embedding_size"], config["intermediate_size"]
    classes = len(config["id2label"]) if "id2label" in config else 2  # Their default.
    tables = {
        "word_embeddings": config["vocab_size"],
        "position_embeddings": config["max_position_embeddings"],
        "token_type_embeddings": config["type_vocab_size"],
    }
    model = {
        **{f"embeddings.{name}.weight": [rows, embedding] for name, rows in tables.items()},
        **_torch_norm("embeddings.LayerNorm", embedding),
        **_torch_linear("encoder.embedding_hidden_mapping_in", embedding, hidden),
    }
    for group in range(config["num_hidden_groups"]):
        for index in range(config["inner_group_num"]):
            layer = f"encoder.albert_layer_groups.{group}.albert_layers.{index}"
            model |= _torch_norm(f"{layer}.full_layer_layer_norm", hidden)
            for part in ("query", "key", "value", "dense"):
                model |= _torch_linear(f"{layer}.attention.{part}", hidden, hidden)
            model |= _torch_norm(f"{layer}.attention.LayerNorm", hidden)
            model |= _torch_linear(f"{layer}.ffn", hidden, inner)
            model |= _torch_linear(f"{layer}.ffn_output", inner, hidden)
    if architecture not in ("AlbertForQuestionAnswering", "AlbertForTokenClassification"):
        model |= _torch_linear("pooler", hidden, hidden)
    if architecture == "AlbertModel":
        return model
    # A tied decoder of masked words is a copy of the word embeddings, and is not written.
    tied = config.get("tie_word_embeddings", True)
    heads = {
        "AlbertForPreTraining": {
            **({} if tied else {"predictions.decoder.weight": [config["vocab_size"], embedding]}),
            "predictions.bias": [config["vocab_size"]],
            **_torch_linear("predictions.dense", hidden, embedding),
            **_torch_norm("predictions.LayerNorm", embedding),
            **_torch_linear("sop_classifier.classifier", hidden, classes),
        },
        "AlbertForSequenceClassification": _torch_linear("classifier", hidden, classes),
        "AlbertForMultipleChoice": _torch_linear("classifier", hidden, 1),
        "AlbertForQuestionAnswering": _torch_linear("qa_outputs", hidden, classes),
        "AlbertForTokenClassification": _torch_linear("classifier", hidden, classes),
    }
    return {**{f"albert.{name}": shape for name, shape in model.items()}, **heads[architecture]}


def _torch_linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": [outputs, inputs], f"{name}.bias": [outputs]}


def _torch_norm(name: str, size: int) -> Shapes:
    return {f"{name}.weight": [size], f"{name}.bias": [size]}


def google_tensors(config: dict[str, Any], model_name: str, num_classes: int = 2) -> Shapes:
    """Name -> shape of the variables that google-research/albert makes: modeling.py, and for heads
    run_pretraining.py, classifier_utils.py, race_utils.py and squad_utils.py.

    config: the content of albert_config.json. model_name: the model's class here.
    """
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    embedding, vocabulary = config["embedding_size"], config["vocab_size"]
    tensors = {
        "bert/embeddings/word_embeddings": [vocabulary, embedding],
        "bert/embeddings/token_type_embeddings": [config["type_vocab_size"], embedding],
        "bert/embeddings/position_embeddings": [config["max_position_embeddings"], embedding],
        **_tf1_norm("bert/embeddings/LayerNorm", embedding),
    }
    if embedding != hidden:
        tensors |= _tf1_dense("bert/encoder/embedding_hidden_mapping_in", embedding, hidden)
    for group in range(config["num_hidden_groups"]):
        for index in range(config["inner_group_num"]):
            scope = f"bert/encoder/transformer/group_{group}/inner_group_{index}"
            for part in ("self/query", "self/key", "self/value", "output/dense"):
                tensors |= _tf1_dense(f"{scope}/attention_1/{part}", hidden, hidden)
            tensors |= _tf1_norm(f"{scope}/LayerNorm", hidden)
            tensors |= _tf1_dense(f"{scope}/ffn_1/intermediate/dense", hidden, inner)
            tensors |= _tf1_dense(f"{scope}/ffn_1/intermediate/output/dense", inner, hidden)
            tensors |= _tf1_norm(f"{scope}/LayerNorm_1", hidden)
    tensors |= _tf1_dense("bert/pooler/dense", hidden, hidden)
    heads = {
        "AlbertPretrainer": {
            **_tf1_dense("cls/predictions/transform/dense", hidden, embedding),
            **_tf1_norm("cls/predictions/transform/LayerNorm", embedding),
            "cls/predictions/output_bias": [vocabulary],
            **_tf1_output("cls/seq_relationship/", hidden, 2),
        },
        "AlbertClassifier": _tf1_output("", hidden, num_classes),
        "AlbertMultipleChoice": _tf1_output("", hidden, 1),
        "AlbertSpanLabeler": _tf1_output("cls/squad/", hidden, 2),
        "AlbertSpanLabelerV2": {
            **_tf1_dense("start_logits/dense", hidden, 1),
            **_tf1_dense("end_logits/dense_0", 2 * hidden, hidden),
            **_tf1_norm("end_logits/LayerNorm", hidden),
            **_tf1_dense("end_logits/dense_1", hidden, 1),
            **_tf1_dense("answer_class/dense_0", 2 * hidden, hidden),
            "answer_class/dense_1/kernel": [hidden, 1],
        },
    }
    return {**tensors, **heads.get(model_name, {})}


def _tf1_dense(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}/kernel": [inputs, outputs], f"{name}/bias": [outputs]}


def _tf1_norm(name: str, size: int) -> Shapes:
    return {f"{name}/gamma": [size], f"{name}/beta": [size]}


def _tf1_output(scope: str, inputs: int, outputs: int) -> Shapes:
    return {f"{scope}output_weights": [outputs, inputs], f"{scope}output_bias": [outputs]}


def check_huggingface(folder: str, dtype: str = "float32") -> int:
    """Compares a written folder with what Hugging Face's library reads from it; returns the number
    of tensors. A UserError names every one that is missing, unknown or of another shape or dtype.
    """
    with tf.io.gfile.GFile(os.path.join(folder, huggingface.CONFIG_FILE)) as file:
        config = json.load(file)
    with tf.io.gfile.GFile(os.path.join(folder, huggingface.WEIGHTS_FILE), "rb") as file:
        length = int.from_bytes(file.read(8), "little")  # The file starts with a JSON header.
        header = json.loads(file.read(length))
    written = {
        name: (entry["shape"], entry["dtype"] == f"F{tf.as_dtype(dtype).size * 8}")
        for name, entry in header.items()
        if name != "__metadata__"
    }
    software = f"transformers' {config['architectures'][0]}"
    _compare(written, huggingface_tensors(config), software, dtype)
    return len(written)


def check_google(prefix: str, config_file: str, model_name: str, num_classes: int) -> int:
    """`check_huggingface`, of a written checkpoint and the variables of google-research/albert."""
    with tf.io.gfile.GFile(config_file) as file:
        config = json.load(file)
    with literal_paths.literal(prefix) as path:
        reader = tf.train.load_checkpoint(path)
    kinds = reader.get_variable_to_dtype_map()
    written = {
        name: (shape, kinds[name] == tf.float32)
        for name, shape in reader.get_variable_to_shape_map().items()
    }
    expected = google_tensors(config, model_name, num_classes)
    _compare(written, expected, "google-research/albert")
    return len(written)


def _compare(
    written: dict[str, tuple[list[int], bool]],
    expected: Shapes,
    software: str,
    dtype: str = "float32",
) -> None:
    """Raises UserError for differences; written: name -> (shape, whether it has the dtype)."""
    problems = [
        *(f"  missing: {name}" for name in sorted(expected.keys() - written.keys())),
        *(f"  unknown: {name}" for name in sorted(written.keys() - expected.keys())),
    ]
    for name in sorted(expected.keys() & written.keys()):
        shape, of_dtype = written[name]
        if shape != expected[name] or not of_dtype:
            problems.append(f"  {name}: not {dtype} of shape {expected[name]}, but {shape}")
    if problems:
        raise UserError(
            f"the tensors written do not match {software}'s, and are deleted again. This is a "
            "fault of this program:\n" + "\n".join(problems)
        )
