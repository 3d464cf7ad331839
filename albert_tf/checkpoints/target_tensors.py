"""The tensors that each format's own software expects for a model, and a check of written files.

All lists were taken from that software's source, independently of names.py: reading a file back
with the same table that wrote it could not detect a tensor that the table forgot.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import huggingface, literal_paths
from albert_tf.config_file import read_json
from albert_tf.errors import UserError
from data_pipeline.files import storage

Shapes = dict[str, list[int]]
# Name of a layer -> (inputs, outputs) of a dense one, (size,) of a norm.
Layers = Mapping[str, tuple[int, ...]]


def huggingface_tensors(config: dict[str, Any]) -> Shapes:
    """Name -> shape of what `save_pretrained` of transformers (4.57, modeling_albert.py,
    modeling_bert.py, modeling_electra.py) writes.

    config: the content of config.json.
    """
    kind, hidden, inner = (
        config[key] for key in ("model_type", "hidden_size", "intermediate_size")
    )
    task = config["architectures"][0].partition("For")[2]  # "" for the bare model.
    embedding = config.get("embedding_size", hidden)
    model = {
        "embeddings.word_embeddings.weight": [config["vocab_size"], embedding],
        "embeddings.position_embeddings.weight": [config["max_position_embeddings"], embedding],
        "embeddings.token_type_embeddings.weight": [config["type_vocab_size"], embedding],
    }
    others: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (embedding,)}
    if kind == "albert":
        others["encoder.embedding_hidden_mapping_in"] = (embedding, hidden)
        for group in range(config["num_hidden_groups"]):
            for index in range(config["inner_group_num"]):
                layer = f"encoder.albert_layer_groups.{group}.albert_layers.{index}"
                for part in ("query", "key", "value", "dense"):
                    others[f"{layer}.attention.{part}"] = (hidden, hidden)
                others[f"{layer}.attention.LayerNorm"] = (hidden,)
                others[f"{layer}.ffn"] = (hidden, inner)
                others[f"{layer}.ffn_output"] = (inner, hidden)
                others[f"{layer}.full_layer_layer_norm"] = (hidden,)
    else:
        for index in range(config["num_hidden_layers"]):
            for part, sizes in _bert_layer(hidden, inner).items():
                others[f"encoder.layer.{index}.{part.replace('/', '.')}"] = sizes
    if kind == "electra" and embedding != hidden:
        others["embeddings_project"] = (embedding, hidden)
    # Hugging Face creates its classes for these two tasks with add_pooling_layer=False.
    if kind != "electra" and task not in ("QuestionAnswering", "TokenClassification"):
        others["pooler" if kind == "albert" else "pooler.dense"] = (hidden, hidden)
    model |= _torch(others)
    if not task:
        return model
    return {**{f"{kind}.{name}": shape for name, shape in model.items()}, **_heads(config, task)}


def _bert_layer(hidden: int, inner: int) -> Layers:
    """A layer of BERT and ELECTRA; both libraries name its parts alike."""
    attention = ("self/query", "self/key", "self/value", "output/dense")
    return {
        **{f"attention/{part}": (hidden, hidden) for part in attention},
        "attention/output/LayerNorm": (hidden,),
        "intermediate/dense": (hidden, inner),
        "output/dense": (inner, hidden),
        "output/LayerNorm": (hidden,),
    }


def _heads(config: dict[str, Any], task: str) -> Shapes:
    kind, hidden, vocabulary = config["model_type"], config["hidden_size"], config["vocab_size"]
    classes = len(config["id2label"]) if "id2label" in config else 2  # Hugging Face's default.
    if task in ("SequenceClassification", "TokenClassification"):
        return _torch({"classifier": (hidden, classes)})
    if task == "MultipleChoice":
        return _torch({"classifier": (hidden, 1)})
    if task == "QuestionAnswering":
        return _torch({"qa_outputs": (hidden, classes)})
    if (kind, task) == ("electra", "PreTraining"):
        head = "discriminator_predictions"
        return _torch({f"{head}.dense": (hidden, hidden), f"{head}.dense_prediction": (hidden, 1)})
    # Scopes in the masked-LM head: of the transform and its norm, of the bias, and of the output
    # table if it is not tied to the word embeddings. A tied table is a copy, and is not written.
    transform, bias, table = {
        "albert": ("predictions", "predictions", "predictions.decoder"),
        "bert": ("cls.predictions.transform", "cls.predictions", "cls.predictions.decoder"),
        "electra": ("generator_predictions", "generator_lm_head", "generator_lm_head"),
    }[kind]
    embedding = config.get("embedding_size", hidden)
    words = _torch(
        {f"{transform}.dense": (hidden, embedding), f"{transform}.LayerNorm": (embedding,)}
    )
    words[f"{bias}.bias"] = [vocabulary]
    if not config.get("tie_word_embeddings", True):
        words[f"{table}.weight"] = [vocabulary, embedding]
    if kind == "electra":
        return words
    # ALBERT's sentence-order head has num_labels outputs, BERT's always 2.
    order = "sop_classifier.classifier" if kind == "albert" else "cls.seq_relationship"
    return {**words, **_torch({order: (hidden, 2 if kind == "bert" else classes)})}


def _torch(layers: Layers) -> Shapes:
    """The tensors of layers by PyTorch's names."""
    weights = {f"{name}.weight": list(reversed(sizes)) for name, sizes in layers.items()}
    return {**weights, **{f"{name}.bias": [sizes[-1]] for name, sizes in layers.items()}}


def google_tensors(
    config: dict[str, Any], model_name: str, num_classes: int = 2, kind: str = "albert"
) -> Shapes:
    """Name -> shape of the variables that google-research's code creates for a kind of model: in
    modeling.py, and for the heads of ALBERT (and BERT) in run_pretraining.py, classifier_utils.py,
    race_utils.py and squad_utils.py (run_classifier.py, run_squad.py).

    config: the content of the configuration. model_name: the model's class here.
    """
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    embedding, vocabulary = config.get("embedding_size", hidden), config["vocab_size"]
    scope = "electra" if kind == "electra" else "bert"
    tables = {
        f"{scope}/embeddings/word_embeddings": [vocabulary, embedding],
        f"{scope}/embeddings/token_type_embeddings": [config["type_vocab_size"], embedding],
        f"{scope}/embeddings/position_embeddings": [config["max_position_embeddings"], embedding],
    }
    layers: dict[str, tuple[int, ...]] = {f"{scope}/embeddings/LayerNorm": (embedding,)}
    if embedding != hidden:
        name = "embeddings_project" if kind == "electra" else "encoder/embedding_hidden_mapping_in"
        layers[f"{scope}/{name}"] = (embedding, hidden)
    if kind != "albert":
        for index in range(config["num_hidden_layers"]):
            for part, sizes in _bert_layer(hidden, inner).items():
                layers[f"{scope}/encoder/layer_{index}/{part}"] = sizes
    for group in range(config.get("num_hidden_groups", 0)):
        for index in range(config["inner_group_num"]):
            layer = f"bert/encoder/transformer/group_{group}/inner_group_{index}"
            for part in ("self/query", "self/key", "self/value", "output/dense"):
                layers[f"{layer}/attention_1/{part}"] = (hidden, hidden)
            layers[f"{layer}/LayerNorm"] = (hidden,)
            layers[f"{layer}/ffn_1/intermediate/dense"] = (hidden, inner)
            layers[f"{layer}/ffn_1/intermediate/output/dense"] = (inner, hidden)
            layers[f"{layer}/LayerNorm_1"] = (hidden,)
    if kind != "electra":
        layers["bert/pooler/dense"] = (hidden, hidden)
    heads = {
        "AlbertPretrainer": {
            **_tf1({"cls/predictions/transform/dense": (hidden, embedding)}),
            **_tf1({"cls/predictions/transform/LayerNorm": (embedding,)}),
            "cls/predictions/output_bias": [vocabulary],
            **_tf1_output("cls/seq_relationship/", hidden, 2),
        },
        "AlbertReplacedTokenDetector": {
            **_tf1({"discriminator_predictions/dense": (hidden, hidden)}),
            **_tf1({"discriminator_predictions/dense_1": (hidden, 1)}),
        },
        "AlbertClassifier": _tf1_output("", hidden, num_classes),
        "AlbertMultipleChoice": _tf1_output("", hidden, 1),
        "AlbertSpanLabeler": _tf1_output("cls/squad/", hidden, 2),
        "AlbertSpanLabelerV2": {
            **_tf1({"start_logits/dense": (hidden, 1)}),
            **_tf1({"end_logits/dense_0": (2 * hidden, hidden)}),
            **_tf1({"end_logits/LayerNorm": (hidden,)}),
            **_tf1({"end_logits/dense_1": (hidden, 1)}),
            **_tf1({"answer_class/dense_0": (2 * hidden, hidden)}),
            "answer_class/dense_1/kernel": [hidden, 1],
        },
    }
    return {**tables, **_tf1(layers), **heads.get(model_name, {})}


def _tf1(layers: Layers) -> Shapes:
    """The variables of layers by TensorFlow 1's names."""
    tensors: Shapes = {}
    for name, sizes in layers.items():
        weights, bias = ("gamma", "beta") if len(sizes) == 1 else ("kernel", "bias")
        tensors |= {f"{name}/{weights}": list(sizes), f"{name}/{bias}": [sizes[-1]]}
    return tensors


def _tf1_output(scope: str, inputs: int, outputs: int) -> Shapes:
    """An output layer outside of any other, whose kernel is stored transposed."""
    return {f"{scope}output_weights": [outputs, inputs], f"{scope}output_bias": [outputs]}


def kerashub_tensors(config: dict[str, Any], task: str | None, num_classes: int = 2) -> Shapes:
    """ "FILE/PATH" -> shape of what `save_to_preset` of KerasHub (0.32, albert_backbone.py,
    albert_masked_lm.py, albert_text_classifier.py) writes, without an optimizer's.

    config: the entry "config" of config.json. task: the class in task.json, if there is one.
    """
    hidden, heads, embedding = config["hidden_dim"], config["num_heads"], config["embedding_dim"]
    by_head = [heads, hidden // heads]
    layers: dict[str, list[list[int]]] = {
        "reversible_embedding": [[config["vocabulary_size"], embedding]],
        "position_embedding": [[config["max_sequence_length"], embedding]],
        "embedding": [[config["num_segments"], embedding]],
        "layer_normalization": [[embedding], [embedding]],
        "dense": [[embedding, hidden], [hidden]],
        "dense_1": [[hidden, hidden], [hidden]],
    }
    for number in range(config["num_groups"] * config["num_inner_repetitions"]):
        layer = f"transformer_encoder_{number}" if number else "transformer_encoder"
        for part in ("query", "key", "value"):
            layers[f"{layer}/_self_attention_layer/{part}_dense"] = [[hidden, *by_head], by_head]
        layers[f"{layer}/_self_attention_layer/output_dense"] = [[*by_head, hidden], [hidden]]
        inner = config["intermediate_dim"]
        layers[f"{layer}/_feedforward_intermediate_dense"] = [[hidden, inner], [inner]]
        layers[f"{layer}/_feedforward_output_dense"] = [[inner, hidden], [hidden]]
        for norm in ("_self_attention_layer_norm", "_feedforward_layer_norm"):
            layers[f"{layer}/{norm}"] = [[hidden], [hidden]]
    head: dict[str, list[list[int]]] = {}
    if task == "AlbertMaskedLM":
        head["masked_lm_head/_intermediate_dense"] = [[hidden, embedding], [embedding]]
        head["masked_lm_head/_intermediate_layer_norm"] = [[embedding], [embedding]]
        head["masked_lm_head"] = [[config["vocabulary_size"]]]
    if task == "AlbertTextClassifier":
        head["dense"] = [[hidden, num_classes], [num_classes]]
    return {
        f"{file}/layers/{layer}/vars/{index}": shape
        for file, parts in (("model.weights.h5", layers), ("task.weights.h5", head))
        for layer, shapes in parts.items()
        for index, shape in enumerate(shapes)
    }


def check_huggingface(folder: str, dtype: str = "float32") -> int:
    """Compares a written folder with what Hugging Face's library reads from it; returns the number
    of tensors. A UserError lists all that are missing, unknown, or have a wrong shape or dtype.
    """
    config = read_json(os.path.join(folder, huggingface.CONFIG_FILE))
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
    """`check_huggingface` for a written checkpoint and the variables of google-research's code."""
    config = read_json(config_file)
    kind = os.path.basename(config_file).partition("_")[0]
    with literal_paths.literal(prefix) as path:
        reader = tf.train.load_checkpoint(path)
    kinds = reader.get_variable_to_dtype_map()
    written = {
        name: (shape, kinds[name] == tf.float32)
        for name, shape in reader.get_variable_to_shape_map().items()
    }
    expected = google_tensors(config, model_name, num_classes, kind)
    _compare(written, expected, f"google-research/{kind}")
    return len(written)


def check_kerashub(folder: str) -> int:
    """`check_huggingface` for a written preset and the weights of KerasHub's classes."""
    import h5py

    written: dict[str, tuple[list[int], bool]] = {}
    names = tf.io.gfile.listdir(folder)
    for name in (name for name in names if name.endswith(".h5")):

        def visit(path: str, each: Any, name: str = name) -> None:
            if isinstance(each, h5py.Dataset):
                written[f"{name}/{path}"] = (list(each.shape), each.dtype == "float32")

        content = io.BytesIO(storage.read_bytes(os.path.join(folder, name)))
        with h5py.File(content, "r") as stored:
            stored.visititems(visit)
    config = read_json(os.path.join(folder, "config.json"))["config"]
    task: dict[str, Any] = {"class_name": None, "config": {}}
    if "task.json" in names:
        task = read_json(os.path.join(folder, "task.json"))
    num_classes = task["config"].get("num_classes", 2)
    expected = kerashub_tensors(config, task["class_name"], num_classes)
    _compare(written, expected, "KerasHub's classes")
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
            f"the written tensors do not match {software}'s, and are deleted. This is a bug "
            "in this program:\n" + "\n".join(problems)
        )
