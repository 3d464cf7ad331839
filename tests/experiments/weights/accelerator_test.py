"""The compiled update under JAX, and the loop around it, which also runs with a made-up update."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertPretrainer, get_preset
from albert_tf.checkpoints import native
from albert_tf.keras_choice import TF_VERSION
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.optimization import AdamW
from albert_tf.training.optimizers import make_optimizer
from albert_tf.training.settings import OptimizerSettings
from albert_tf.training.steps import Stepper
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.tokenized import tokenize
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.weights import accelerator, compile_update, tokens

VOCABULARY = "albert_tf/weights/albert-small-en/spiece.model"
WORDPIECE = "tests/goldens/wordpiece/vocab.txt"
SETTINGS = PretrainingSettings(max_seq_length=16)
STEPS, BATCH_SIZE = 6, 4
RECIPE = ("--learning_rate=0.01", "--num_train_steps=6", "--num_warmup_steps=2")
WRITES_STABLEHLO = TF_VERSION >= (2, 16)


def jax_python() -> str | None:
    """An interpreter with jax, numpy, absl-py and sentencepiece, if there is one."""
    folder = os.environ.get("ALBERT_TF_PEERS")
    return os.environ.get("ALBERT_TF_JAX") or (folder and f"{folder}/jax/bin/python")


@pytest.fixture(name="files")
def fixture_files(tmp_path, few_words):
    """Two files of tokens, and the folder of a compiled update without the update."""
    tokenizer = load_tokenizer(VOCABULARY)
    for part in range(2):
        pages = [
            [" ".join(few_words[i + j :][: 5 + j]) + f" {part}." for j in range(4)]
            for i in range(8)
        ]
        content = tokens.packed(tokenize(pages, tokenizer))
        (tmp_path / f"part-{part}.npz.xz").write_bytes(content)
    folder = tmp_path / "compiled"
    folder.mkdir()
    shutil.copy(VOCABULARY, folder)
    about = {"seed": 3, "batch_size": BATCH_SIZE, "num_train_steps": STEPS, "figures": ["loss"]}
    about |= {"examples": vars(SETTINGS), "weights": ["a", None], "inputs": {}}
    about["starts"] = about["weights"]
    about["vocab_file"] = "spiece.model"
    (folder / "update.json").write_text(json.dumps(about))
    np.savez(folder / "state.npz", np.zeros(2, np.float32), np.zeros(2, np.float32))
    return tmp_path


def test_a_pass_reads_every_file_once_with_other_masks_than_the_next(files):
    names = [str(files / f"part-{part}.npz.xz") for part in range(2)]
    units = [accelerator.draw(names, str(files / "compiled"), unit) for unit in range(4)]
    again = accelerator.draw(names, str(files / "compiled"), 1)
    for batch, same in zip(units[1], again):
        assert all(np.array_equal(batch[name], same[name]) for name in batch)
    last = load_tokenizer(VOCABULARY).encode("1.")
    has_last = [
        any(last[0] in batch["input_word_ids"] for batch in unit) for unit in units
    ]  # Of the second file alone.
    assert sorted(has_last[:2]) == sorted(has_last[2:]) == [False, True]
    first, second = (units[has_last.index(True, start)][0] for start in (0, 2))
    assert not np.array_equal(first["masked_lm_positions"], second["masked_lm_positions"])
    assert first["input_word_ids"].shape == (BATCH_SIZE, 16)
    assert first["input_word_ids"].dtype == np.uint16


def test_a_vocabulary_of_wordpiece(files):
    compiled, path = files / "compiled", shutil.copy(WORDPIECE, files / "compiled")
    about = json.loads((compiled / "update.json").read_text())
    (compiled / "update.json").write_text(json.dumps({**about, "vocab_file": "vocab.txt"}))
    tokenizer = load_tokenizer(str(path))
    pages = [["the cat is here", "it is a cat", "the end"]] * 8
    (files / "part.npz.xz").write_bytes(tokens.packed(tokenize(pages, tokenizer)))
    first = accelerator.draw([str(files / "part.npz.xz")], str(compiled), 0)[0]
    assert (first["input_word_ids"][:, 0] == tokenizer.cls_id).all()


@pytest.fixture(name="run")
def fixture_run(files, monkeypatch):
    """(update, output, minutes, weights) -> a run by a made-up update, on a machine of one core."""
    monkeypatch.setattr(accelerator.os, "cpu_count", lambda: 1)

    def run(update, output, minutes=0, weights=None):
        values = {"compiled": str(files / "compiled"), "tokens": f"{files}/*.xz", "processes": 0}
        values |= {"output_dir": str(output), "max_minutes": minutes, "save_minutes": 1e9}
        flags = type("Flags", (), {**values, "report_steps": 2, "weights": weights})
        monkeypatch.setattr(accelerator, "FLAGS", flags)
        monkeypatch.setattr(accelerator, "compiled_update", lambda *unused: update)
        accelerator.main()

    return run


def test_weights_that_are_not_finite_are_not_saved(files, run):
    for minutes, step in ((1e-9, 1), (0, 2)):  # By the time, and by the log.
        with pytest.raises(accelerator.UserError, match=f"Update {step} is not finite"):
            run(lambda batch, state: (np.array([np.nan]), state), files / "run", minutes)
    assert not list((files / "run").iterdir())


def test_a_run_goes_on_where_it_was_saved(files, run):
    seen = []

    def update(batch, state):
        seen.append(batch["input_word_ids"])
        return np.array([1.0]), [state[0] + 1, state[1] + batch["input_word_ids"].sum()]

    whole, parts = files / "whole", files / "parts"
    for output, minutes in ((whole, 0), *[(parts, 1e-9)] * STEPS):
        run(update, output, minutes)
    assert len(seen) == 2 * STEPS
    assert all(map(np.array_equal, seen[:STEPS], seen[STEPS:]))
    first, second = (accelerator.load(output, {}, [""] * 2) for output in (whole, parts))
    assert first[1:] == second[1:] and first[1] == STEPS
    assert all(map(np.array_equal, first[0], second[0]))
    with np.load(whole / "weights.npz") as file:
        assert file["a"].tolist() == [STEPS] * 2 and file["a"].dtype == np.float16
    head, *rows = (whole / "log.csv").read_text().split()
    assert head == "step,loss,tokens_per_second" and [row[0] for row in rows] == [*"246"]

    run(update, files / "third", 1e-9, weights=str(whole / "weights.npz"))
    with np.load(files / "third" / "weights.npz") as file:  # One more update than it began with.
        assert file["a"].tolist() == [STEPS + 1] * 2
    np.savez(files / "other.npz", b=np.zeros(2))
    with pytest.raises(accelerator.UserError, match="holds other weights than .*compiled trains"):
        run(update, files / "fourth", weights=str(files / "other.npz"))
    shutil.copy(files / "part-0.npz.xz", files / "part-2.npz.xz")
    with pytest.raises(accelerator.UserError, match="matches 3 files, but .*whole began with 2"):
        run(update, whole)


def test_missing_tokens_are_named(files, result_of):
    result = result_of(
        "experiments.weights.accelerator",
        *(f"--compiled={files}/compiled", "--tokens=none/*.xz", f"--output_dir={files}/run"),
    )
    assert result.returncode == 2 and "--tokens=none/*.xz matches no file" in result.stderr


def test_weights_are_collected_by_name(tiny_config, files, result_of):
    model = AlbertPretrainer(tiny_config)
    arrays = [np.random.rand(*each.shape) for each in model.trainable_variables]
    compiled = files / "compiled"
    (compiled / "update.json").write_text(json.dumps({"vocab_file": "spiece.model"}))
    tiny_config.to_json_file(str(compiled / "config.json"))
    named = {v.name: a.astype(np.float16) for v, a in zip(model.trainable_variables, arrays)}
    np.savez(files / "weights.npz", **dict(reversed(named.items())))
    collected = result_of(
        "experiments.weights.collect",
        *(f"--compiled={compiled}", f"--weights={files}/weights.npz"),
        f"--output_dir={files}/model",
    )
    assert collected.returncode == 0, collected.stderr
    found = AlbertPretrainer.from_preset(str(files / "model"))
    for each, array in zip(found.trainable_variables, arrays):
        np.testing.assert_array_equal(each.numpy(), array.astype(np.float16))


@pytest.mark.parametrize(
    "flag", ["--objective=replaced_tokens", "--precision=mixed_float16", "--pack_documents"]
)
def test_what_is_not_compiled_is_refused(flag, result_of, tmp_path):
    result = result_of("experiments.weights.compile_update", flag, f"--output_dir={tmp_path}/a")
    assert result.returncode == 2 and flag in result.stderr and not (tmp_path / "a").exists()


@pytest.mark.skipif(WRITES_STABLEHLO, reason="This TensorFlow writes StableHLO")
def test_a_tensorflow_without_stablehlo_is_refused(tiny_config):
    model = AlbertPretrainer(tiny_config)
    stepper = Stepper(PretrainingObjective(model), AdamW(0.1), tf.distribute.get_strategy())
    batch = compile_update.empty_batch(2, PretrainingSettings(max_seq_length=8))
    with pytest.raises(compile_update.UserError, match=r"2\.15.* 2\.21 of Python 3\.12"):
        compile_update.compiled(stepper, batch)


@pytest.mark.skipif(not WRITES_STABLEHLO, reason="This TensorFlow writes no StableHLO")
@pytest.mark.skipif(jax_python() is None, reason="NOT COMPARED: no ALBERT_TF_PEERS with jax")
def test_six_updates_under_jax_are_those_of_tensorflow(files, result_of):
    config = get_preset("albert-small-en").replace(
        embedding_size=8, hidden_size=16, num_attention_heads=2, intermediate_size=32
    )
    model = AlbertPretrainer(config)
    native.save(model, str(files / "start"), {}, VOCABULARY, {"lower": True, "rules": "google"})
    compiled = result_of(
        "experiments.weights.compile_update",
        *(f"--init_checkpoint={files}/start", f"--output_dir={files}/update", "--seed=3"),
        *("--max_seq_length=16", f"--train_batch_size={BATCH_SIZE}", "--bias_correction", *RECIPE),
        "--ema_decay=0.5",
    )
    assert compiled.returncode == 0, compiled.stderr
    command = ["-m", "experiments.weights.accelerator", f"--compiled={files}/update"]
    command += [f"--tokens={files}/*.xz", f"--output_dir={files}/run", "--processes=1"]
    subprocess.run([jax_python(), *command], check=True, env={**os.environ, "PYTHONPATH": "."})
    collected = result_of(
        "experiments.weights.collect",
        *(f"--compiled={files}/update", f"--weights={files}/run/weights.npz"),
        f"--output_dir={files}/model",
    )
    assert collected.returncode == 0, collected.stderr

    settings = OptimizerSettings("adamw", 0.01, 2, bias_correction=True, ema_decay=0.5)
    optimizer = make_optimizer(settings, config, STEPS)
    stepper = Stepper(PretrainingObjective(model), optimizer, tf.distribute.get_strategy())
    names = [str(files / f"part-{part}.npz.xz") for part in range(2)]
    drawn = [
        {name: tf.cast(batch[name], like.dtype) for name, like in _empty().items()}
        for unit in range(4)
        for batch in accelerator.draw(names, str(files / "update"), unit)
    ][:STEPS]
    start = [each.numpy() for each in model.trainable_variables]
    for batch in drawn:
        stepper.strategy.run(stepper._replica_train_step, args=(batch,))
    about = json.loads((files / "update" / "update.json").read_text())
    state, step, _ = accelerator.load(files / "run", about, names)
    theirs = {name: array for name, array in zip(about["weights"], state) if name}
    assert step == STEPS and len(theirs) == len(start)
    # Other weights replace the trained ones and their averages.
    assert sorted(filter(None, about["starts"])) == sorted(2 * list(theirs))
    with stepper.averaged():
        for each in model.trainable_variables:
            np.testing.assert_allclose(theirs[each.name], each.numpy(), atol=1e-4)
        # The gradient of the bias of keys is 0: the softmax does not see it.
        after = [each.numpy() for each in model.trainable_variables]
        assert [np.abs(a - b).max() > 1e-3 for a, b in zip(after, start)].count(False) <= 1
        shipped = AlbertPretrainer.from_preset(str(files / "model"))
        for each, like in zip(shipped.trainable_variables, after):
            np.testing.assert_allclose(each.numpy(), like, atol=2e-3)


def _empty():
    return compile_update.empty_batch(BATCH_SIZE, SETTINGS)
