"""Output layers are taken over only where their classes are those of the examples."""

from __future__ import annotations

import json

import pytest

from albert_tf.checkpoints import huggingface
from albert_tf.errors import UserError
from albert_tf.finetuning.head_labels import check_head
from albert_tf.models import AlbertClassifier
from albert_tf.training import InitialModel

MNLI = ("contradiction", "entailment", "neutral")


@pytest.fixture
def start(tiny_config, tmp_path):
    """Names of classes -> a Hugging Face folder that has them."""

    def make(*names: str) -> InitialModel:
        huggingface.save(AlbertClassifier(tiny_config, len(names)), str(tmp_path), names)
        return InitialModel(init_checkpoint=str(tmp_path))

    return make


def test_the_same_names_in_another_order_are_refused(start):
    with pytest.raises(UserError, match="knows entailment, neutral, contradiction, and the exampl"):
        check_head(start("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), MNLI)


@pytest.mark.parametrize("names", [MNLI, ("Contradiction", "Entailment", "Neutral")])
def test_the_same_names_in_the_same_order(start, names):
    check_head(start(*names), MNLI)


def test_names_that_say_nothing(start, tmp_path):
    model = start("LABEL_0", "LABEL_1", "LABEL_2")
    check_head(model, MNLI)
    config = tmp_path / "config.json"
    values = json.loads(config.read_text())
    assert huggingface.read_labels(str(tmp_path)) == ["LABEL_0", "LABEL_1", "LABEL_2"]
    del values["id2label"]
    config.write_text(json.dumps(values))
    assert huggingface.read_labels(str(tmp_path)) == []
    check_head(model, MNLI)


def test_no_initial_model():
    with pytest.raises(UserError, match="--init_checkpoint, which is missing"):
        check_head(InitialModel(), MNLI)
