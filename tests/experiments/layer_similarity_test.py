"""What layers do to their input, as NumPy finds it text by text, and copies by known models."""

from __future__ import annotations

import csv
import dataclasses
import types
import zlib

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertPretrainer, preset_vocabulary
from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments import layer_similarity
from experiments.copy_probe import DISTANCES, QUESTIONS, count_copies, text_ids
from tests.conformance_cases import BASE

TEXTS = ["The cat sat on the mat. It was warm.", "Rain fell.", "A road leads to the old town."]
LENGTH = 10  # The first text is cut, the second is padded.


@pytest.fixture(name="tokenizer", scope="module")
def fixture_tokenizer():
    return load_tokenizer(preset_vocabulary("albert-small-en"))


@pytest.fixture(name="config", scope="module")
def fixture_config(tokenizer) -> AlbertConfig:
    size = tokenizer.vocab_size
    return BASE.replace(vocab_size=size, max_position_embeddings=300, initializer_range=0.3)


@pytest.fixture(name="models", scope="module")
def fixture_models(config, tokenizer, tmp_path_factory):
    """Folders of a shared and an unshared model by name, and their models."""
    found = {}
    for sharing in ("all", "none"):
        keras.utils.set_random_seed(3)
        model = AlbertPretrainer(config.replace(parameter_sharing=sharing))
        path = str(tmp_path_factory.mktemp("models") / sharing)
        settings = dataclasses.asdict(tokenizer.settings)
        native.save(model, path, {"max_seq_length": 16}, tokenizer.vocab_file, settings)
        found[path] = model
    return found


def deeper(model: AlbertPretrainer, depth: int) -> list[AlbertPretrainer]:
    """Models of 1, 2, ... layers, of which the shared one's weights are in each."""
    found = []
    for layers in range(1, depth + 1):
        found.append(AlbertPretrainer(model.config.replace(num_hidden_layers=layers)))
        found[-1].set_weights(model.get_weights())
    return found


def states_of(model: AlbertPretrainer, stacks: list, ids: list[int]) -> list[np.ndarray]:
    """The embedding, by its formula, and each layer's output for a text by itself, [S, H] each: the
    last output of stacks of 1, 2, ... layers, if there are any.
    """
    table = model.encoder.embeddings
    x = table.word_embeddings.numpy()[ids] + table.token_type_embeddings.numpy()[0]
    x += table.position_embeddings.numpy()[: len(ids)]
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    states = [x @ table.projection.kernel.numpy()]  # Scales are 1, biases 0.
    outputs = [stack.encoder([ids])["sequence_output"] for stack in stacks]
    outputs = outputs or model.encoder([ids])["encoder_outputs"]
    return [*states, *(output[0].numpy() for output in outputs)]


def test_the_table_is_that_of_each_text_by_itself(models, tokenizer, tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("\n\n".join(text.replace(". ", ".\n") for text in TEXTS))
    given = types.SimpleNamespace(
        model=list(models),
        text=str(tmp_path / "text.txt"),
        max_texts=9,
        max_seq_length=LENGTH,
        iterations=2,
        copies=True,
        output_dir=str(tmp_path / "out"),
    )
    monkeypatch.setattr(layer_similarity, "FLAGS", given)
    monkeypatch.setattr(layer_similarity, "_BATCH", 2)
    layer_similarity.main()
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"layers.csv", "copies.csv", "layers.png"}
    with open(tmp_path / "out" / "layers.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cut = [
        [tokenizer.cls_id, *tokenizer.encode(text)[: LENGTH - 2], tokenizer.sep_id]
        for text in TEXTS
    ]
    assert sorted(map(len, cut))[0] < LENGTH == max(map(len, cut))
    for name, model in models.items():
        stacks = deeper(model, 4) if model.config.parameter_sharing == "all" else []
        each = [np.array(states_of(model, stacks, ids), np.float64) for ids in cut]
        states = np.concatenate(each, axis=1)  # [1 + layers, T, H]
        for layer in range(1, len(states)):
            before, after = states[layer - 1], states[layer]
            lengths = [np.sqrt((x * x).sum(-1)) for x in (before, after, after - before)]
            cosine = np.einsum("th,th->t", before, after) / (lengths[0] * lengths[1])
            expected = {
                "distance": lengths[2],
                "relative distance": lengths[2] / lengths[0],
                "cosine": cosine,
                "angle": np.arccos(cosine) * 180 / np.pi,
            }
            found = {
                row["measure"]: row
                for row in rows
                if (row["model"], row["layer"]) == (name, str(layer))
            }
            assert set(found) == set(expected)
            for measure, values in expected.items():
                row = found[measure]
                assert (row["depth"], row["tokens"]) == ("2", str(sum(map(len, cut))))
                figures = [float(row[key]) for key in ("mean", "p10", "p90")]
                wanted = [values.mean(), np.quantile(values, 0.1), np.quantile(values, 0.9)]
                np.testing.assert_allclose(figures, wanted, rtol=1e-3, atol=1e-4)
    assert len(rows) == 4 * (4 + 2)
    with open(tmp_path / "out" / "copies.csv", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 2 * len(QUESTIONS) * len(DISTANCES)
    given.max_seq_length = 301
    with pytest.raises(UserError, match="--max_seq_length=301: .* has 300 positions"):
        layer_similarity.main()


class Answers:
    """A model whose first choice for a mask is a function of its text and the mask's position."""

    def __init__(self, config: AlbertConfig, answer) -> None:
        self.config, self._answer = config, answer

    def __call__(self, inputs):
        ids, positions = inputs["input_word_ids"], inputs["masked_lm_positions"][:, 0]
        best = [self._answer(row, at) for row, at in zip(ids, positions)]
        return {"masked_lm_logits": tf.one_hot(best, self.config.vocab_size)[:, None].numpy()}


def test_copies_are_counted(config, tokenizer):
    def counts(answer) -> dict[tuple[str, int], tuple[int, int, int]]:
        rows = count_copies(Answers(config, answer), tokenizer)
        assert all(row["words"] >= 15 for row in rows)
        return {
            (row["question"], row["distance"]): (row["found"], row["another"], row["words"])
            for row in rows
        }

    for offset in DISTANCES:
        found = counts(lambda row, at, offset=offset: row[max(at - offset, 0)])
        assert len(found) == len(QUESTIONS) * len(DISTANCES)
        for (_, distance), (right, wrong, words) in found.items():
            assert (right, wrong) == (words * (distance == offset), 0)
    (thomas,) = tokenizer.encode("thomas")
    for (name, _), (right, wrong, _) in counts(lambda row, at: thomas).items():
        assert right == wrong == (name not in ("noun", "city"))
    # The other person stands between the word and the mask.
    place = 1 + len(tokenizer.encode("thomas bought a red car and"))
    found = counts(lambda row, at: row[place])
    for distance in DISTANCES:
        right, wrong, words = found["two people", distance]
        assert (right, wrong) == (0, words)


def test_whole_words_fill_the_longest_distance():
    def encode(text: str) -> list[int]:
        return [zlib.crc32(word.encode()) for word in text.split()]

    words = types.SimpleNamespace(cls_id=1, sep_id=2, mask_id=3, encode=encode)
    for question in QUESTIONS.values():
        ids = text_ids(question, 4, 5, DISTANCES[-1], words)
        assert ids.index(3) - ids.index(4) == DISTANCES[-1]


def test_what_cannot_be_probed_is_said(config, tokenizer):
    short = AlbertPretrainer(config.replace(max_position_embeddings=100))
    with pytest.raises(UserError, match="The probe has 1.. tokens, the model 100 positions"):
        count_copies(short, tokenizer)
