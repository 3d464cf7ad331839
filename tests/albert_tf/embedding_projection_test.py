"""Where E equals H: google-research has no projection, Hugging Face always has one."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertEncoder, AlbertPretrainer, from_preset
from albert_tf.checkpoints import formats, google, huggingface, native, target_tensors
from albert_tf.checkpoints.huggingface_config import to_huggingface
from albert_tf.errors import UserError
from albert_tf.variable_names import variable_name

GOLDENS = Path(__file__).parents[1] / "goldens"
THEIRS = GOLDENS / "hf_tiny_equal"
GOOGLE = GOLDENS / "google_tiny_equal"
PROJECTION = "albert.encoder.embedding_hidden_mapping_in"


def load(path: Path):
    source = formats.recognize(str(path))
    model = source.make_model(source.config())
    assert source.load(model, formats.Allowed(formats.WITHOUT_PAIRS)) == []
    return model


def batch(golden: Path, **names: str) -> dict[str, tf.Tensor]:
    with np.load(golden / "inputs.npz") as file:
        return {ours: tf.constant(file[theirs], tf.int32) for ours, theirs in names.items()}


def tensors(folder: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(folder / "model.safetensors")


def assert_same_weights(one, other) -> None:
    assert [variable_name(variable) for variable in one.variables] == [
        variable_name(variable) for variable in other.variables
    ]
    for left, right in zip(one.variables, other.variables):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(("folder", "projects"), [("identity", False), ("random", True)])
def test_folders_of_hugging_face_agree_with_it(folder, projects, tmp_path):
    model = load(THEIRS / folder)
    assert model.config.always_project_embeddings == projects
    inputs = batch(
        THEIRS,
        input_word_ids="input_ids",
        input_mask="attention_mask",
        input_type_ids="token_type_ids",
    )
    inputs["masked_lm_positions"] = tf.tile(tf.range(14)[None], [3, 1])
    outputs, real = model(inputs), inputs["input_mask"].numpy()[..., None]
    hidden = model.encoder(inputs)["sequence_output"]
    with np.load(THEIRS / "outputs.npz") as file:
        expected = {name: file[f"{folder}/{name}"] for name in ("last_hidden_state", "sop_logits")}
        words = file[f"{folder}/prediction_logits"]
    np.testing.assert_allclose(hidden * real, expected["last_hidden_state"] * real, atol=1e-5)
    np.testing.assert_allclose(outputs["masked_lm_logits"] * real, words * real, atol=1e-5)
    np.testing.assert_allclose(outputs["sentence_order_logits"], expected["sop_logits"], atol=1e-5)
    huggingface.save(model, str(tmp_path / "again"))
    theirs, ours = tensors(THEIRS / folder), tensors(tmp_path / "again")
    assert theirs.keys() == ours.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value)
    native.save(model, str(tmp_path / "native"), {})
    for copy in (load(tmp_path / "again"), load(tmp_path / "native")):
        assert copy.config == model.config
        assert_same_weights(model, copy)


def test_a_checkpoint_of_google_gets_the_identity(tmp_path):
    model = load(GOOGLE)
    inputs = batch(
        GOOGLE,
        input_word_ids="input_ids",
        input_mask="input_mask",
        input_type_ids="segment_ids",
        masked_lm_positions="masked_lm_positions",
    )
    with np.load(GOOGLE / "outputs.npz") as file:
        expected = dict(file)
    real = inputs["input_mask"].numpy()[..., None]
    outputs, encoded = model(inputs), model.encoder(inputs)
    pairs = [
        (encoded["sequence_output"] * real, expected["sequence_output"] * real),
        (encoded["pooled_output"], expected["pooled_output"]),
        (tf.nn.log_softmax(outputs["sentence_order_logits"]), expected["sentence_order_log_probs"]),
        (
            tf.nn.log_softmax(outputs["masked_lm_logits"])[0],  # No prediction is padding there.
            expected["masked_lm_log_probs"].reshape([3, 3, -1])[0],
        ),
    ]
    for value, reference in pairs:
        np.testing.assert_allclose(value, reference, atol=1e-5)
    huggingface.save(model, str(tmp_path / "theirs"))
    written = tensors(tmp_path / "theirs")
    np.testing.assert_array_equal(written[f"{PROJECTION}.weight"], np.eye(16))
    np.testing.assert_array_equal(written[f"{PROJECTION}.bias"], np.zeros(16))
    target_tensors.check_huggingface(str(tmp_path / "theirs"))
    copy = load(tmp_path / "theirs")
    google.save(copy, str(tmp_path / "model.ckpt"))
    first, last = (
        tf.train.load_checkpoint(str(folder / "model.ckpt")) for folder in (GOOGLE, tmp_path)
    )
    assert first.get_variable_to_shape_map() == last.get_variable_to_shape_map()
    for name in first.get_variable_to_shape_map():
        np.testing.assert_array_equal(first.get_tensor(name), last.get_tensor(name))


def test_an_encoder_of_such_a_folder(tmp_path):
    encoder = from_preset(str(THEIRS / "random"))
    kernel = encoder.embeddings.projection.kernel
    np.testing.assert_array_equal(
        kernel, tensors(THEIRS / "random")[f"{PROJECTION}.weight"].transpose()
    )
    assert from_preset(str(THEIRS / "identity")).embeddings.projection is None
    huggingface.save(encoder, str(tmp_path))
    assert f"{PROJECTION}.weight".removeprefix("albert.") in tensors(tmp_path)
    assert_same_weights(encoder, load(tmp_path))


def test_a_configuration_of_ones_own_must_have_the_projection():
    config = AlbertConfig.from_json_file(str(THEIRS / "random" / "config.json"))
    with pytest.raises(UserError, match="is not the identity.*always_project_embeddings"):
        from_preset(str(THEIRS / "random"), config=config)
    with pytest.raises(UserError, match="misshapen: albert.embeddings.word_embeddings"):
        from_preset(str(GOLDENS / "hf_tiny" / "pretraining"), config=config)
    from_preset(str(THEIRS / "random"), config=config.replace(always_project_embeddings=True))
    from_preset(str(THEIRS / "identity"), config=config.replace(always_project_embeddings=True))


def test_what_cannot_be_converted_is_said(tmp_path):
    with pytest.raises(UserError, match=r"no projection if embedding_size equals.*\(32\)"):
        google.save(load(THEIRS / "random"), str(tmp_path / "model.ckpt"))
    shutil.copy(THEIRS / "identity" / "config.json", tmp_path)
    values = tensors(THEIRS / "identity")
    del values[f"{PROJECTION}.bias"]
    safetensors.numpy.save_file(values, tmp_path / "model.safetensors")
    config = AlbertConfig.from_json_file(str(tmp_path / "config.json"))
    for read in (lambda: load(tmp_path), lambda: from_preset(str(tmp_path), config=config)):
        with pytest.raises(UserError, match=f"lacks {PROJECTION}.bias, which Hugging Face's lib"):
            read()


def test_the_switch_travels_with_the_configuration(tiny_config, tmp_path):
    config = tiny_config.replace(embedding_size=16, always_project_embeddings=True)
    config.to_json_file(str(tmp_path / "albert_config.json"))
    assert AlbertConfig.from_json_file(str(tmp_path / "albert_config.json")) == config
    assert AlbertConfig.from_dict(to_huggingface(config)) == config
    assert "always_project_embeddings" not in to_huggingface(tiny_config)
    encoder = AlbertEncoder(config)
    copy = AlbertEncoder.from_config(encoder.get_config())
    assert [value.shape for value in copy.variables] == [value.shape for value in encoder.variables]
    with_it, without = (
        len(AlbertPretrainer(one).variables)
        for one in (config, config.replace(always_project_embeddings=False))
    )
    assert with_it == without + 2
