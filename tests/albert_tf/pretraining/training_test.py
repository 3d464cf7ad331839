"""Pre-training from Python: the example of the documentation, and the same bits as the program."""

import dataclasses
import re
import types
from pathlib import Path

import pytest

from albert_tf.analysis.costs import pretraining_flops_per_token
from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.pretraining import PretrainingData, open_records, training
from albert_tf.pretraining import pretrain as pretrain_from_python
from albert_tf.training import LoopSettings, ModelFolders, OptimizerSettings, RunSettings
from tests.run_results import check_tensors

ROOT = Path(__file__).parents[3]

# What makes the documented example short: smaller, fewer.
SHORTENED = {
    '"albert-small"': '"albert-tiny"',
    "batch_size=64": "batch_size=8",
    "num_warmup_steps=1_000": "num_warmup_steps=1",
    "num_train_steps=20_000": "num_train_steps=4",
    '"records/train"': '"sop"',
    '"records/heldout"': '"nsp"',
}


def test_the_documented_lines(work, tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(list(filter(None, program.splitlines()))) <= 10
    for long, short in SHORTENED.items():
        assert long in program
        program = program.replace(long, short)
    for name in ("sop", "nsp"):
        (tmp_path / name).symlink_to(work / name)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "docs/training.md", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.startswith("Pre-training\n") and "Held-out evaluation on nsp" in shown
    assert 0 <= float(shown.splitlines()[-1]) <= 1
    assert native.read_metadata("runs/small/model")["task"] == "pretraining"


@pytest.mark.usefixtures("eager")
def test_the_program_does_the_same(work, tmp_path, pretrain):
    """With dropout and dynamic masks, bit for bit."""
    made = pretrain(num_train_steps=2, num_warmup_steps=1)
    assert made.returncode == 0, made.stderr
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    data = open_records(str(work / "sop"), batch_size=8)
    model = AlbertPretrainer(AlbertConfig.from_json_file(str(work / "config.json")))
    settings = RunSettings(
        str(tmp_path / "python"), OptimizerSettings("lamb", 0.02, 1), LoopSettings(2, 2, 4)
    )
    assert pretrain_from_python(model, data, settings) == {}
    weights = f"model/{native.WEIGHTS_PREFIX}"
    check_tensors(tmp_path / "run" / weights, tmp_path / "python" / weights)


@pytest.fixture
def described(monkeypatch) -> list:
    """The experiments that would be run."""
    experiments = []
    monkeypatch.setattr(training, "run_experiment", lambda one: experiments.append(one) or {})
    return experiments


def make_data(num_examples: int | None, has_statistics: bool = True) -> PretrainingData:
    manifest = {
        "max_predictions": 3, "max_seq_length": 12, "vocab_fingerprint": "f",
        "directory": "records", "vocab_file": "spiece.model", "tokenizer": {"lower_case": True},
        "settings": {"sentence_objective": "nsp"},
    }  # fmt: skip
    return PretrainingData(
        name="records", batches=None, batch_size=8, seed=0, num_examples=num_examples,
        max_seq_length=12, vocab_size=50, must_not_change={}, manifest=manifest,
        has_statistics=has_statistics,
    )  # fmt: skip


SETTINGS = RunSettings("run", OptimizerSettings("lamb", 0.1), LoopSettings(30), eval_batch_size=5)


def test_what_the_experiment_is(described, tiny_config):
    model, data = AlbertPretrainer(tiny_config), make_data(num_examples=100)
    assert pretrain_from_python(model, data, SETTINGS) == {}
    (found,) = described
    flops = pretraining_flops_per_token(tiny_config, 12, 3)
    data = dataclasses.replace(data, must_not_change={"teacher": None, "objective": "mlm"})
    assert (found.title, found.data, found.settings) == ("Pre-training", data, SETTINGS)
    assert found.objective.model is model and "next_sentence_loss" in found.objective.losses
    assert found.flops_per_token == flops
    assert found.evaluator is found.examples is found.print_results is None
    assert found.card == {
        "training operations": f"{flops / 1e6:,.1f} MFLOP a token",
        "passes over the data": "2.4",
        "expected first loss": "4.61 (ln V + ln 2)",
    }
    assert found.models == ModelFolders(
        best="best_model",
        last="model",
        metric="loss",
        higher_is_better=False,
        metadata={"max_seq_length": 12, "vocab_fingerprint": "f"},
        vocab_file="records/spiece.model",
        tokenizer={"lower_case": True},
    )
    finetune, export = found.next_commands()
    assert finetune.startswith(
        "python -m albert_tf.run_finetuning --task=tsv --init_checkpoint=run/model "
    )
    assert "--model_dir=run/model --task=masked_lm" in export


def test_the_card_of_text_without_pairs(described, tiny_config):
    data = make_data(None)
    data.manifest["settings"]["sentence_objective"] = "none"
    pretrain_from_python(AlbertPretrainer(tiny_config), data, SETTINGS)
    assert described[0].card["expected first loss"] == "3.91 (ln V)"
    assert described[0].card["passes over the data"] == "not counted (--train_text)"


@pytest.mark.parametrize("has_statistics", [True, False])
def test_how_it_is_evaluated(described, tiny_config, monkeypatch, has_statistics):
    calls = []
    held_out = types.SimpleNamespace(
        sha256=lambda: "a hash",
        evaluator=lambda model, vocab_fingerprint: ("evaluator", vocab_fingerprint),
        print_results=lambda metrics, train_manifest: calls.append((metrics, train_manifest)),
    )
    monkeypatch.setattr(training, "HeldOut", lambda *given: calls.append(given) or held_out)
    monkeypatch.setattr(training, "example_writer", lambda *given: given[1])
    data = make_data(100, has_statistics)
    pretrain_from_python(AlbertPretrainer(tiny_config), data, SETTINGS, ["heldout"])
    (found,) = described
    assert found.evaluator == ("evaluator", "f") and found.examples.manifest is data.manifest
    assert found.models.metadata["eval_data_sha256"] == "a hash"
    found.print_results({"loss": 1.0})
    manifest = data.manifest if has_statistics else None
    assert calls == [(["heldout"], 5), ({"loss": 1.0}, manifest)]
