"""Folders of Hugging Face's library: all that can change an answer is used, or refused by name."""

import functools
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from albert_tf import AlbertClassifier, AlbertEncoder, AlbertPretrainer, AlbertTokenClassifier
from albert_tf.checkpoints import google, huggingface, native
from albert_tf.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer

GOLDENS = Path(__file__).parents[1] / "goldens"
UNTIED = GOLDENS / "hf_tiny_untied"
VOCABULARIES = {
    "spiece.model": GOLDENS / "hf_tokenizer" / "spiece.model",
    "vocab.txt": GOLDENS / "wordpiece" / "vocab.txt",
}
NAMES = ["no", "maybe", "yes"]


@pytest.fixture
def convert(result_of):
    """Arguments -> what the program says."""
    return functools.partial(result_of, "albert_tf.convert")


def change_config(folder: Path, **values: object) -> None:
    """Other values in a config.json; None removes a key."""
    path = folder / "config.json"
    content = {**json.loads(path.read_text()), **values}
    kept = {key: value for key, value in content.items() if value is not None}
    path.write_text(json.dumps(kept))


def read(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text())


@pytest.mark.parametrize("make", [AlbertClassifier, AlbertTokenClassifier])
def test_class_names_survive_every_conversion(convert, tiny_config, tmp_path, make):
    huggingface.save(make(tiny_config, 3), str(tmp_path / "first"), NAMES)
    for before, after in (("first", "native"), ("native", "huggingface")):
        result = convert(
            f"--input={tmp_path / before}", f"--output={tmp_path / after}", f"--format={after}"
        )
        assert result.returncode == 0, result.stderr
    assert read(tmp_path / "native", "model.json")["labels"] == NAMES
    config = read(tmp_path / "huggingface", "config.json")
    assert config["id2label"] == {"0": "no", "1": "maybe", "2": "yes"}
    assert config["label2id"] == {"no": 0, "maybe": 1, "yes": 2}


def test_names_without_a_place_are_said(convert, tiny_config, tmp_path):
    native.save(AlbertClassifier(tiny_config, 3), str(tmp_path / "in"), {"labels": NAMES})
    result = convert(f"--input={tmp_path}/in", f"--output={tmp_path}/out", "--format=google")
    assert "google cannot store the names of the classes: no, maybe, yes" in result.stdout


def test_a_regression_has_no_names(convert, tiny_config, tmp_path):
    huggingface.save(AlbertClassifier(tiny_config, 1), str(tmp_path / "in"))
    assert read(tmp_path / "in", "config.json")["problem_type"] == "regression"
    convert(f"--input={tmp_path}/in", f"--output={tmp_path}/out", "--format=native")
    metadata = read(tmp_path / "out", "model.json")
    assert metadata["labels"] == [] and metadata["num_classes"] == 1


def test_the_number_of_classes_without_names(convert, tiny_config, tmp_path):
    huggingface.save(AlbertClassifier(tiny_config, 5), str(tmp_path / "in"))
    change_config(tmp_path / "in", id2label=None, label2id=None, num_labels=5)
    result = convert(f"--input={tmp_path}/in", f"--output={tmp_path}/out", "--format=native")
    assert result.returncode == 0, result.stderr
    metadata = read(tmp_path / "out", "model.json")
    assert metadata["num_classes"] == 5 and "labels" not in metadata
    result = convert(f"--input={tmp_path}/in", f"--output={tmp_path}/hf", "--format=huggingface")
    assert "tensors as transformers has them" in result.stdout


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"problem_type": "ranking"}, "problem_type is 'ranking', not 'single_label_"),
        ({"problem_type": "regression"}, "one number per text only, not 3"),
        ({"id2label": None, "num_labels": "3"}, "num_labels must be a positive integer, not '3'"),
        ({"id2label": {"0": "a", "2": "b"}}, "id2label must number its classes from 0"),
        ({"id2label": {"0": 1, "1": 2}}, "id2label has names that are not strings"),
        ({"id2label": 3}, "id2label must number its classes from 0: 3"),
        ({"architectures": ["AlbertForTrees"]}, "architecture 'AlbertForTrees' is not one of"),
        ({"architectures": [[]]}, "architecture [] is not one of"),
        ({"architectures": 3}, "architecture 3 is not one of"),
    ],
)
def test_other_answers_are_refused(convert, tiny_config, tmp_path, values, message):
    huggingface.save(AlbertClassifier(tiny_config, 3), str(tmp_path / "in"), NAMES)
    change_config(tmp_path / "in", **values)
    result = convert(f"--input={tmp_path}/in", f"--output={tmp_path}/out", "--format=native")
    assert result.returncode == 2 and f"{tmp_path}/in/config.json: " in result.stderr
    assert message in result.stderr and not (tmp_path / "out").exists()


def change_weights(folder: Path, changes: dict[str, np.ndarray | None]) -> None:
    """Other tensors in a model.safetensors; None removes one."""
    path = folder / "model.safetensors"
    content = {**safetensors.numpy.load_file(path), **changes}
    kept = {name: value for name, value in content.items() if value is not None}
    safetensors.numpy.save_file(kept, path, {"format": "pt"})


def masked_lm_logits(folder: Path) -> np.ndarray:
    model = AlbertPretrainer.from_preset(str(folder))
    ids = tf.range(10)[None] * 3
    outputs = model({"input_word_ids": ids, "masked_lm_positions": tf.range(10)[None]})
    return outputs["masked_lm_logits"].numpy()


def test_an_output_table_of_its_own_is_kept(convert, tmp_path):
    """Through every format that can hold it, the answers are transformers' own."""
    steps = [UNTIED, tmp_path / "native", tmp_path / "huggingface"]
    for before, after in itertools.pairwise(steps):
        result = convert(f"--input={before}", f"--output={after}", f"--format={after.name}")
        assert result.returncode == 0, result.stderr
    for folder in steps:
        np.testing.assert_allclose(
            masked_lm_logits(folder), np.load(UNTIED / "prediction_logits.npy"), atol=1e-5
        )
    first, last = (
        safetensors.numpy.load_file(folder / "model.safetensors") for folder in steps[::2]
    )
    assert first.keys() == last.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, last[name])
    refused = convert(f"--input={UNTIED}", f"--output={tmp_path}/google", "--format=google")
    assert refused.returncode == 2 and "masked_lm/output_embeddings" in refused.stderr


@pytest.mark.parametrize("name", ["predictions.decoder.weight", "predictions.decoder.bias"])
def test_copies_with_other_values_are_refused(convert, tiny_config, tmp_path, name):
    """Equal ones are left out. An encoder has nothing to do with either."""
    folder = tmp_path / "in"
    huggingface.save(AlbertPretrainer(tiny_config), str(folder))
    stored = safetensors.numpy.load_file(folder / "model.safetensors")
    copy_of = {"weight": "albert.embeddings.word_embeddings.weight", "bias": "predictions.bias"}
    value = stored[copy_of[name.split(".")[-1]]]
    for number, (copy, code) in enumerate([(value, 0), (value + 1, 2)]):
        change_weights(folder, {name: copy})
        result = convert(
            f"--input={folder}", f"--output={tmp_path}/out{number}", "--format=huggingface"
        )
        assert result.returncode == code
    assert f"{name} differs from" in result.stderr
    AlbertEncoder.from_preset(str(folder))
    with pytest.raises(UserError, match='set "tie_word_embeddings": false there'):
        AlbertPretrainer.from_preset(str(folder))


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_adapters_are_refused(convert, tiny_config, tmp_path, name):
    huggingface.save(AlbertClassifier(tiny_config, 3), str(tmp_path / "in"))
    (tmp_path / "in" / name).write_text("{}")
    result = convert(f"--input={tmp_path}/in", f"--output={tmp_path}/out", "--format=native")
    assert result.returncode == 2 and f"holds {name}, of an adapter" in result.stderr


@pytest.mark.parametrize(
    ("kind", "number"), [("native", np.nan), ("huggingface", np.inf), ("google", np.nan)]
)
def test_numbers_that_are_not_finite_are_refused(convert, tiny_config, tmp_path, kind, number):
    model, folder = AlbertPretrainer(tiny_config), tmp_path / "in"
    if kind != "huggingface":  # There `save` refuses infinities.
        model.masked_lm.output_bias[3].assign(number)
    if kind == "native":
        native.save(model, str(folder), {})
    elif kind == "huggingface":
        huggingface.save(model, str(folder))
        change_weights(folder, {"predictions.bias": np.full(50, number, np.float32)})
    else:
        folder.mkdir()
        google.save(model, str(folder / "model.ckpt"))
        tiny_config.to_json_file(str(folder / "albert_config.json"))
    result = convert(f"--input={folder}", f"--output={tmp_path}/out", "--format=native")
    name = {
        "native": "masked_lm/output_bias",
        "huggingface": "predictions.bias",
        "google": "cls/predictions/output_bias",
    }[kind]
    assert result.returncode == 2 and f"numbers in {name} that are not finite" in result.stderr


def test_outputs_that_are_not_finite_are_said(convert, tiny_config, tmp_path):
    """Two answers that are no numbers do not differ by 0."""
    encoder = AlbertEncoder(tiny_config)
    for variable in encoder.variables:
        if "layer_norm" in variable.name:
            variable.assign(tf.fill(variable.shape, 3e38))
    native.save(encoder, str(tmp_path / "in"), {})
    result = convert(f"--input={tmp_path}/in", f"--output={tmp_path}/out", "--format=native")
    assert result.returncode == 2 and "outputs are not finite" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("kind", "name"),
    [("native", "spiece.model"), ("huggingface", "vocab.txt"), ("google", "spiece.model")],
)
def test_a_vocabulary_is_read_before_it_is_copied(convert, tiny_config, tmp_path, kind, name):
    """To every format."""
    good = VOCABULARIES[name].read_bytes()
    pieces = load_tokenizer(str(VOCABULARIES[name])).vocab_size
    folder = tmp_path / "in"
    huggingface.save(AlbertEncoder(tiny_config.replace(vocab_size=pieces + 9)), str(folder))
    arguments = [f"--input={folder}", f"--output={tmp_path}/out", f"--format={kind}"]
    for damaged in (b"", good[: len(good) // 2], b"A text that is no vocabulary.\n" * 90):
        (folder / name).write_bytes(damaged)
        result = convert(*arguments)
        assert result.returncode == 2 and name in result.stderr, damaged[:20]
        assert "Traceback" not in result.stderr and not (tmp_path / "out").exists()
    (folder / name).write_bytes(good)
    result = convert(*arguments)
    assert result.returncode == 0, result.stderr
    assert next((tmp_path / "out").glob(f"*{Path(name).suffix}")).read_bytes() == good


def test_a_vocabulary_of_another_size(convert, tiny_config, tmp_path):
    """One that lies elsewhere is compared with the model, too."""
    huggingface.save(AlbertEncoder(tiny_config.replace(vocab_size=1200)), str(tmp_path / "in"))
    given = (f"--input={tmp_path}/in", f"--output={tmp_path}/out", "--format=huggingface")
    result = convert(*given, f"--vocab_file={VOCABULARIES['spiece.model']}")
    assert result.returncode == 2
    assert "has 1000 pieces, and the model's vocab_size is 1200" in result.stderr
