"""Tags of words: learned from files, predicted for others, averaged over models, scored."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.finetuning.finetuned import evaluate, load_finetuned, predict
from albert_tf.finetuning.tasks.base import Predictions, TaskData
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.finetuning.training import FineTuningSettings, finetune
from albert_tf.training import InitialModel
from albert_tf.training.devices import Devices
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.tagging import TaggedExample
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

TASK = TASKS["tagging"]
DEVICES = Devices(tf.distribute.OneDeviceStrategy("CPU:0"), packed=True, is_fast=False)
LABELS = ("O", "B-X", "I-X")


def example(words, tags=None, line=1):
    words = tuple(words.split(" "))
    return TaggedExample(str(line), words, tags and tuple(tags.split(" ")), "f.conll", line)


def split_of(*examples):
    return Split("dev", list(examples))


@pytest.fixture
def features(work):
    """(examples, S, whether there are targets) -> Features."""
    tokenizer = load_tokenizer(str(work / "vocabulary" / "spiece.model"))

    def features(examples, length=32, has_targets=True, labels=LABELS):
        split = split_of(*examples)
        return TASK.features(split, tokenizer, LengthSettings(length), labels, has_targets)

    return features


EXAMPLES = [example("the cat sat", "O B-X I-X"), example("a mat", "O O", line=5)]


def outputs_of(features, tags):
    """Logits that are wrong everywhere but at the first pieces of words."""
    sentences = features.source
    logits = np.full([len(sentences), features.max_seq_length, 3], np.nan, np.float32)
    for row, place, tag in zip(sentences.rows, sentences.places, tags, strict=True):
        logits[row, place] = np.log([0.1, 0.1, 0.1])
        logits[row, place, tag] = np.log(0.8)
    return {"logits": logits}


def test_answers_are_those_of_first_pieces(features):
    found = features(EXAMPLES)
    assert found.sequence_outputs == ("logits",)
    kept = TASK.keep(found, outputs_of(found, [0, 1, 2, 2, 1]))
    assert kept["logits"].shape == (5, 3) and kept["logits"].dtype == np.float32
    predictions = TASK.answer(found, [kept])
    assert predictions.values == [("O", "B-X", "I-X"), ("I-X", "B-X")]
    np.testing.assert_allclose(predictions.probabilities.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose([*predictions.details[0], *predictions.details[1]], 0.8, atol=1e-6)
    assert TASK.gold(found) == [("O", "B-X", "I-X"), ("O", "O")]
    scores = TASK.score(found, predictions)
    assert scores == {"f1": 0.5, "precision": 1 / 3, "recall": 1.0, "accuracy": 0.6}


@pytest.mark.parametrize(
    ("average", "tag", "probability"),
    [
        (None, "B-X", 1.1 / 3),
        ("probabilities", "B-X", 1.1 / 3),
        # The share of I-X in the third roots of the products: 0.0285, 0.1522, 0.1615.
        ("logits", "I-X", 0.4719),
        ("votes", "O", 2 / 3),
    ],
)
def test_averages_of_members(features, average, tag, probability):
    """One is sure of B-X, two prefer O a little, and hold I-X for nearly as likely."""
    found = features([example("cat", "O")])
    members = [
        {"logits": np.log(np.float32([probabilities]))}
        for probabilities in ((0.0001, 0.98, 0.0199), *[(0.48, 0.06, 0.46)] * 2)
    ]
    predictions = TASK.averaging(average).answer(found, members)
    assert predictions.values == [(tag,)]
    assert predictions.details == [(pytest.approx(probability, abs=1e-3),)]
    assert predictions.probabilities.shape == (1, 3)


def test_words_that_are_cut_off_are_outside(features, capsys):
    words = " ".join(["\u4e00"] * 6)  # One unknown piece each, after the word's mark.
    found = features([example(words, "B-X O O O O B-X"), EXAMPLES[1]], 8)
    assert "f.conll: 3 of 8 words, the ends of 1 sentences," in capsys.readouterr().out
    num_kept = len(found.source.rows)
    predictions = TASK.answer(found, [TASK.keep(found, outputs_of(found, [1] * num_kept))])
    assert predictions.values[0] == ("B-X", "B-X", "B-X", "O", "O", "O")
    assert predictions.details[0][3:] == (0.0, 0.0, 0.0) and len(predictions.probabilities) == 5
    assert TASK.score(found, predictions)["recall"] == 0.5, "the last one counts as wrong"


def test_scores_of_parts_of_speech_are_of_words(features):
    labels = ("NUM", "SYM")
    found = features([example("one two three", "NUM NUM SYM")], labels=labels)
    scores = TASK.score(found, Predictions([("NUM", "SYM", "SYM")]))
    assert set(scores.values()) == {2 / 3}


def test_written_answers(features, tmp_path):
    found = features([example("a\u2028b cat", "O B-Q"), example("mat")], has_targets=False)
    values = Predictions([("O", "B-X"), ("O",)], None, [(0.5, 1.0), (1 / 3,)])
    (path,) = TASK.write(str(tmp_path / "answers"), found, LABELS, values)
    assert path.endswith("answers.conll")
    with open(path, encoding="utf-8", newline="") as file:
        assert file.read() == (
            "a b\tO\tO\t0.500000\ncat\tB-Q\tB-X\t1.000000\n\nmat\tO\t0.333333\n\n"
        )


@pytest.fixture
def folder(tmp_path, few_words):
    """Files in which some words are always of one kind, and a vocabulary of whole words."""
    kinds = {few_words[i]: kind for i, kind in ((1, "B-X"), (9, "B-X"), (10, "I-X"))}
    lines = []
    for i in range(24):
        words = few_words[i % 8 :][:6]
        lines += [f"{word}\t{kinds.get(word, 'O')}" for word in words] + [""]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.conll").write_text("\n".join(lines))
    (tmp_path / "words.txt").write_text("\n".join(line.split("\t")[0] for line in lines[::-1]))
    pieces = [*WordPieceTokenizer.SPECIAL_PIECES, *dict.fromkeys(few_words)]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    config = AlbertConfig(
        vocab_size=len(pieces), embedding_size=8, hidden_size=16, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=16, max_position_embeddings=16,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    config.to_json_file(str(tmp_path / "config.json"))
    return tmp_path


def test_words_are_tagged_from_files_to_answers(folder, capsys):
    start = InitialModel(config_file=str(folder / "config.json"))
    settings = FineTuningSettings(
        learning_rate=0.01, num_train_steps=60, train_batch_size=12, lengths=LengthSettings(16),
        classifier_dropout=0.0, vocab_file=str(folder / "vocab.txt"),
    )  # fmt: skip
    run = str(folder / "run")
    (result,) = finetune(start, "tagging", str(folder), run, settings, DEVICES)
    assert (result.task, result.split, result.num_examples) == ("tagging", "dev", 24)
    assert result.best.metrics["f1"] > 0.9 and result.key == "f1"
    assert "3: O, B-X, I-X" in capsys.readouterr().out
    with np.load(folder / "run" / "outputs" / "dev.best.npz") as kept:
        assert kept["logits"].shape == (24 * 6, 3)

    found = load_finetuned(f"{run}/model", TASK, DEVICES)
    scores = evaluate(found, TaskData(str(folder)), ["dev"], 7, run)
    assert scores["dev"] == pytest.approx(result.best.metrics)
    source = TaskData(files={"predict": str(folder / "words.txt")})
    predict(found, source, ["predict"], 7, run)
    answers = {}
    for line in (folder / "run" / "predictions" / "tagging_predict.conll").read_text().split("\n"):
        if line:
            word, predicted, probability = line.split("\t")
            answers.setdefault(word, []).append(predicted)
            assert 1 / 3 <= float(probability) <= 1
    truth = [line.split("\t") for line in (folder / "dev.conll").read_text().split("\n") if line]
    right = [tag in answers[word] for word, tag in truth]
    assert np.mean(right) > 0.9 and sum(map(len, answers.values())) == 24 * 6

    words = dataclasses.replace(source, files={"dev": str(folder / "words.txt")})
    with pytest.raises(UserError, match=r"words.txt:2: expected a word and its tag"):
        evaluate(found, words, ["dev"], 7, run)
