"""The architecture that a run starts from, and the data that fit it."""

import numpy as np
import pytest
import safetensors.numpy

from albert_tf.checkpoints import huggingface, native
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertPretrainer
from albert_tf.pretrained.presets import get_preset
from albert_tf.training import InitialModel


def test_a_preset_takes_over_the_vocabulary_size(capsys):
    config = InitialModel(preset="albert-tiny", recompute=True).config(77, 64, "records")
    assert config == get_preset("albert-tiny").replace(vocab_size=77, recompute=True)
    assert capsys.readouterr().out == "--preset=albert-tiny: vocab_size 77, from the data.\n"


@pytest.fixture
def folder(tiny_config, tmp_path) -> str:
    """A model folder with a vocabulary."""
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    path = str(tmp_path / "model")
    native.save(AlbertPretrainer(tiny_config), path, {}, str(tmp_path / "vocab.txt"), {})
    return path


def test_weights_bring_their_architecture_and_vocabulary(folder, tiny_config, tmp_path):
    start = InitialModel(init_checkpoint=folder)
    assert start.config(50, 16, "records") == tiny_config
    assert start.chosen_vocabulary(None) == f"{folder}/vocab.txt"
    assert start.chosen_vocabulary("mine.txt") == "mine.txt"
    shipped = InitialModel(preset="albert-small-en").chosen_vocabulary(None)
    assert shipped.endswith("albert-small-en/spiece.model")
    with pytest.raises(UserError, match="--vocab_file is missing. Pass it, or --init_check"):
        InitialModel(preset="albert-tiny").chosen_vocabulary(None)


def test_weights_are_loaded_where_there_are_some(folder, tiny_config):
    before = AlbertPretrainer(tiny_config)
    InitialModel(preset="albert-tiny").load_weights(before)
    other = native.load_model(folder)
    assert not np.array_equal(before.weights[0], other.weights[0])
    InitialModel(init_checkpoint=folder).load_weights(before)
    np.testing.assert_array_equal(before.weights[0], other.weights[0])
    classifier = AlbertClassifier(tiny_config, 2)
    InitialModel(init_checkpoint=folder).load_start(classifier)
    np.testing.assert_array_equal(classifier.weights[0], other.weights[0])


def test_positions_that_were_not_trained_begin_as_copies(folder, tiny_config):
    learned = np.array(native.load_model(folder).encoder.embeddings.position_embeddings)
    model, classifier = AlbertPretrainer(tiny_config), AlbertClassifier(tiny_config, 2)
    start = InitialModel(init_checkpoint=folder, repeat_positions=6)
    start.load_weights(model)
    start.load_start(classifier)
    expected = np.concatenate([learned[:6], learned[:6], learned[:4]])  # 16 positions.
    for encoder in (model.encoder, classifier.encoder):
        np.testing.assert_array_equal(encoder.embeddings.position_embeddings, expected)


def test_positions_that_cannot_be_repeated(folder, tiny_config):
    with pytest.raises(UserError, match="--repeat_positions=6 copies .* Give --init_checkpoint"):
        InitialModel(preset="albert-tiny", repeat_positions=6)
    start = InitialModel(init_checkpoint=folder, repeat_positions=17)
    with pytest.raises(UserError, match="--repeat_positions=17 does not lie between 1 and 16"):
        start.load_weights(AlbertPretrainer(tiny_config))


@pytest.mark.parametrize(
    ("vocab_size", "length", "message"),
    [
        (49, 16, "the vocabulary of records has 49 pieces, the model's vocab_size is 50"),
        (50, 17, "max_seq_length 17 is longer than the model's 16 positions"),
    ],
)
def test_data_that_do_not_fit(folder, vocab_size, length, message):
    with pytest.raises(UserError, match=message):
        InitialModel(init_checkpoint=folder).config(vocab_size, length, "records")


def test_one_architecture_is_named():
    with pytest.raises(UserError, match="no architecture is given"):
        InitialModel().config(50, 16, "records")
    both = InitialModel(preset="albert-tiny", config_file="config.json")
    with pytest.raises(UserError, match="--preset and --config_file are both given"):
        both.config(50, 16, "records")


def test_architecture_from_a_file(tiny_config, tmp_path):
    path = str(tmp_path / "config.json")
    tiny_config.to_json_file(path)
    assert InitialModel(config_file=path).config(50, 16, "records") == tiny_config
    recomputing = InitialModel(config_file=path, recompute=True).config(50, 16, "records")
    assert recomputing == tiny_config.replace(recompute=True)
    tiny_config.replace(recompute=True).to_json_file(path)
    assert InitialModel(config_file=path).config(50, 16, "records").recompute


def test_a_preset_with_weights_keeps_its_vocabulary_size(folder, capsys):
    """Their table of words has that size."""
    start = InitialModel(preset="albert-tiny", init_checkpoint=folder)
    with pytest.raises(UserError, match="has 77 pieces, the model's vocab_size is 8000"):
        start.config(77, 16, "records")
    assert start.config(8000, 16, "records") == get_preset("albert-tiny")
    assert not capsys.readouterr().out


def test_weights_without_a_vocabulary(tiny_config, tmp_path):
    native.save(AlbertPretrainer(tiny_config), str(tmp_path / "bare"), {})
    start = InitialModel(init_checkpoint=str(tmp_path / "bare"))
    with pytest.raises(
        UserError, match="--vocab_file is missing: no vocabulary found next to .*bare"
    ):
        start.chosen_vocabulary(None)


def test_a_hugging_face_folder_may_lack_the_order_of_sentences(tiny_config, tmp_path, capsys):
    """As the published albert-base-v2 does."""
    published = AlbertPretrainer(tiny_config)
    huggingface.save(published, str(tmp_path))
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    kept = {name: each for name, each in tensors.items() if "sop_classifier" not in name}
    assert len(kept) == len(tensors) - 2
    safetensors.numpy.save_file(kept, path)
    model = AlbertPretrainer(tiny_config)
    InitialModel(init_checkpoint=str(tmp_path)).load_weights(model)
    np.testing.assert_array_equal(model.masked_lm.output_bias, published.masked_lm.output_bias)
    shown = capsys.readouterr().out
    assert shown.startswith(f"Not in {tmp_path}, and new: sentence_order/")
