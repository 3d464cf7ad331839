"""Which model folders can be exported as what, and what is refused."""

import dataclasses
import json
import os
import re
from pathlib import Path

import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.models import AlbertPretrainer
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import TokenizerSettings
from export.model_folder import LABELS_FILE, open_model
from export.saved_model import MANIFEST_FILE
from export.tasks import TASKS, export_model


def refuse(model_dir, tmp_path, match, task="classifier", **arguments):
    out = tmp_path / "out"
    with pytest.raises(UserError, match=match):
        export_model(str(model_dir), str(out), task, **arguments)
    assert not out.exists()


def test_task_must_fit_the_model(model_dirs, tmp_path):
    refuse(model_dirs["pretrainer"], tmp_path, "--task=classifier needs a model for classification")
    folder = model_dirs["classifier"]
    refuse(folder, tmp_path, "masked_lm needs a model for pretraining", "masked_lm")
    refuse(folder, tmp_path, "is not one of classifier, regression, masked_lm", "squad")


def test_a_regression_is_no_classifier(model_dirs, tmp_path):
    """The sentence names what can be made of it; none of that has names of classes."""
    message = "holds one for regression. Use --task=regression|"
    refuse(model_dirs["regression"], tmp_path, re.escape(message))
    folder, settings = model_dirs["regression"], {"version": 7, "max_seq_length": 10}
    path = export_model(folder, str(tmp_path), "regression", **settings, inputs="tokens").path
    assert os.path.basename(path) == "7"
    assert not os.path.exists(os.path.join(path, "assets", LABELS_FILE))
    assert json.loads(Path(path, MANIFEST_FILE).read_text())["max_seq_length"] == 10


def test_a_model_may_have_more_rows_than_there_are_pieces(config, vocabulary_dir, tmp_path):
    model = AlbertPretrainer(config.replace(vocab_size=config.vocab_size + 9))
    model.masked_lm.output_bias.assign_add([0.0] * config.vocab_size + [100.0] * 9)
    settings = dataclasses.asdict(TokenizerSettings())
    vocab_file = str(vocabulary_dir / "spiece.model")
    native.save(model, str(tmp_path / "model"), {"max_seq_length": 16}, vocab_file, settings)
    folder = str(tmp_path / "model")
    opened = open_model(folder, native.read_metadata(folder), None, str(tmp_path))
    module, _ = TASKS["masked_lm"].build(opened)
    answer = module.signatures()["serving_default"](text=tf.constant(["the [MASK]"]))
    assert answer["top_pieces"].numpy().tolist() == [[[b""] * 5]]
