"""Text to filled masks and to vectors, with any weights."""

import dataclasses
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertPreprocessor,
    AlbertPretrainer,
    MaskFiller,
    SentenceEmbedder,
)
from albert_tf.checkpoints import huggingface, native
from albert_tf.errors import UserError
from albert_tf.pretrained.presets import get_preset
from data_pipeline.finetuning.examples import TextExample
from data_pipeline.finetuning.features import encode_texts
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.conformance_cases import SHALLOW

VOCABULARY = Path(__file__).parents[2] / "goldens" / "hf_tokenizer" / "spiece.model"
TEXTS = ["the cat sat on the mat", "in 2010", ""]


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(str(VOCABULARY))


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    """A model folder whose model knows that every mask is "▁cat", or else "▁the"."""
    config = SHALLOW.replace(vocab_size=tokenizer.vocab_size, max_position_embeddings=512)
    model = AlbertPretrainer(config)
    bias = np.zeros(config.vocab_size, np.float32)
    bias[tokenizer.encode("the cat")] = [20, 21]
    model.masked_lm.output_bias.assign(bias)
    path = str(tmp_path_factory.mktemp("models") / "model")
    tokenization = dataclasses.asdict(tokenizer.settings)
    native.save(model, path, {"max_seq_length": 16}, str(VOCABULARY), tokenization)
    return path


def test_masks_are_filled(folder):
    fill = MaskFiller(folder, max_seq_length=16)
    found = fill("the [MASK] sat on [MASK].", top_k=2)
    assert [[piece for piece, _ in best] for best in found] == [["cat", "the"]] * 2
    (_, first), (_, second) = found[0]
    assert first / second == pytest.approx(np.e, rel=0.3) and first + second > 0.99
    assert fill("no mask") == []


def test_vectors_are_the_mean_over_the_tokens_of_a_text(folder, tokenizer):
    embed = SentenceEmbedder(folder, max_seq_length=16)
    found = embed.encode(TEXTS)
    assert found.shape == (3, 16) and embed([]).shape == (0, 16)
    for text, vector in zip(TEXTS, found):
        example = TextExample("", text, None, None, "", 1)
        inputs = encode_texts([example], tokenizer, 16).inputs()
        hidden = embed.model.encoder(inputs)["sequence_output"][0].numpy()
        real = inputs["input_mask"][0].astype(bool)
        np.testing.assert_allclose(vector, hidden[real].mean(axis=0), atol=1e-5)


def test_the_default_is_the_length_of_training_and_a_cut_is_said_once(folder, tokenizer):
    """model.json says 16; ids are as many as fit, and longer texts do not change shorter ones."""
    long = "the cat sat on the mat " * 8
    embed = SentenceEmbedder(folder)
    with pytest.warns(UserWarning, match="a text of .* tokens is cut to 16") as said:
        found = embed([long, *TEXTS])
        np.testing.assert_allclose(found[:1], embed([long]), atol=1e-6)
    assert [each.filename for each in said] == [__file__]
    np.testing.assert_allclose(found[1:], embed(TEXTS), atol=1e-6)


def test_the_positions_are_the_default_where_the_folder_does_not_say(folder, tokenizer, tmp_path):
    model, text = native.load_model(folder), "[MASK] " + "the cat sat on the mat " * 8 + "[MASK]"
    path = str(tmp_path / "model")
    native.save(model, path, {}, str(VOCABULARY), dataclasses.asdict(tokenizer.settings))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert len(MaskFiller(path)(text)) == 2


@pytest.mark.parametrize("name", ["__call__", "similarity"])
def test_a_cut_is_said_of_the_line_of_the_call(folder, name):
    embed, text = SentenceEmbedder(folder), "the cat sat on the mat " * 8
    with pytest.warns(UserWarning, match="is cut to 16") as said:
        getattr(embed, name)(*[text] * (1 if name == "__call__" else 2))
    assert [each.filename for each in said] == [__file__]


def test_what_is_no_text_is_refused(folder):
    fill, embed = MaskFiller(folder), SentenceEmbedder(folder)
    for call in (lambda: fill(["a [MASK]"]), lambda: fill("a [MASK]", 0), lambda: embed([b"a"])):
        with pytest.raises(UserError, match="takes (a string|strings).*; received"):
            call()
    assert len(fill("a [MASK]", 10**6)[0]) == fill.model.config.vocab_size


def test_a_mask_that_is_cut_off_is_said(folder):
    fill = MaskFiller(folder)
    text = "[MASK] " + "the cat sat on the mat " * 8 + "[MASK]"
    for _ in range(2):
        with pytest.warns(UserWarning, match="1 of 2 masks lie beyond the first 16 tokens"):
            assert len(fill(text)) == 1


def test_similarity_is_the_cosine(folder):
    embed = SentenceEmbedder(folder, max_seq_length=16)
    first, second = embed(TEXTS[:1]), embed(TEXTS[1:2])
    expected = np.vdot(first, second) / np.linalg.norm(first) / np.linalg.norm(second)
    found = embed.similarity([TEXTS[0], TEXTS[0]], [TEXTS[1], TEXTS[0]])
    np.testing.assert_allclose(found, [expected, 1], atol=1e-5)
    np.testing.assert_allclose(embed.similarity(*TEXTS[:2]), [expected], atol=1e-5)
    np.testing.assert_array_equal(embed.encode(TEXTS[0]), embed(TEXTS[:1])[0])
    with pytest.raises(UserError, match="equal numbers of texts; received 1 and 3"):
        embed.similarity(TEXTS[:1], TEXTS)
    for length in (2, 10_000):
        with pytest.raises(UserError, match=f"max_seq_length={length}: expected 3 to "):
            SentenceEmbedder(folder, max_seq_length=length)


def test_a_model_without_the_words_fills_no_masks(tokenizer, tmp_path):
    config = get_preset("albert-tiny").replace(vocab_size=tokenizer.vocab_size)
    settings = dataclasses.asdict(tokenizer.settings)
    classifier = AlbertClassifier(config, 2)
    native.save(classifier, str(tmp_path / "model"), {}, str(VOCABULARY), settings)
    with pytest.raises(UserError, match="masked_lm/"):
        MaskFiller(str(tmp_path / "model"))


MEAN = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "include_prompt": True}
CLS = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}


@pytest.mark.parametrize(
    ("pooling", "more"), [(MEAN, []), (CLS, []), (MEAN, ["Normalize"]), (MEAN, ["Dense"])]
)
def test_steps_of_sentence_transformers(tokenizer, tmp_path, pooling, more):
    """A folder of that library says how its encoder's outputs become vectors, and of what length a
    text may be.
    """
    config = get_preset("albert-tiny").replace(vocab_size=tokenizer.vocab_size)
    encoder = AlbertEncoder(config)
    huggingface.save(encoder, str(tmp_path))
    shutil.copy(VOCABULARY, tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 6}))
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), *((f"x_{k}", k) for k in more)]
    content = [{"path": path, "type": f"sentence_transformers.models.{k}"} for path, k in modules]
    (tmp_path / "modules.json").write_text(json.dumps(content))
    if more == ["Dense"]:
        with pytest.raises(UserError, match="its vectors need Dense, and only mean"):
            SentenceEmbedder(str(tmp_path))
        return
    embed, texts = SentenceEmbedder(str(tmp_path)), ["the cat", "too many words for six tokens"]
    with pytest.warns(UserWarning, match="is cut to 6"):
        found = embed(texts)
    inputs = AlbertPreprocessor.from_preset(str(tmp_path), max_seq_length=6)(tf.constant(texts))
    hidden = encoder(inputs)["sequence_output"].numpy()
    real = inputs["input_mask"].numpy()[..., None]
    expected = hidden[:, 0] if pooling is CLS else (hidden * real).sum(1) / real.sum(1)
    if more:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)
