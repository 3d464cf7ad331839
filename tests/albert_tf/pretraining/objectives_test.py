"""The objective of replaced tokens as a user runs it: the same bits after an interruption, a model
folder that fine-tunes and converts, sentences for what does not go together.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertClassifier, AlbertReplacedTokenDetector, from_preset
from albert_tf.checkpoints import native
from albert_tf.pretraining import open_records
from albert_tf.pretraining.objectives import detection_baselines, with_noise

FLAGS = ("--objective=replaced_tokens", "--generator_size=0.5")
CONSTANT = ("--schedule=wsd", "--decay_share=0")  # A shorter run has the same rates.


def weights(folder) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(folder))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_noise_is_a_function_of_seed_and_step(work):
    data = open_records(str(work / "sop"), batch_size=8)

    def noise(seed=1, start=0, context=None, count=3):
        batches = with_noise(data.batches, seed, 8)(start_step=start, input_context=context)
        return np.stack([each["sampling_noise"].numpy() for each in batches.take(count)])

    whole = noise()
    assert whole.shape[:2] == (3, 8) and 0 <= whole.min() < 0.1 and 0.9 < whole.max() < 1
    np.testing.assert_array_equal(noise(start=1, count=2), whole[1:])
    assert not np.array_equal(noise(seed=2), whole)
    assert not np.array_equal(whole[0], whole[1])
    hosts = [noise(context=tf.distribute.InputContext(2, host, 2)) for host in (0, 1)]
    np.testing.assert_array_equal(np.concatenate(hosts, axis=1), whole)


@pytest.fixture
def train(work, result_of, pretraining_command):
    """(folder, *flags) -> the output of a run of replaced tokens that ends well."""

    def run(folder, *flags: str) -> str:
        _, module, *arguments = pretraining_command(eval_data=work / "sop", output_dir=folder)
        ended = result_of(module, *arguments, *FLAGS, *flags)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@pytest.fixture
def whole(train, tmp_path_factory):
    """The folder of a run of all steps, which is made once; `shown.txt` is what it printed."""
    folder = tmp_path_factory.getbasetemp() / "a_run_of_replaced_tokens"
    if not (folder / "shown.txt").exists():
        shown = train(folder, *CONSTANT)
        (folder / "shown.txt").write_text(shown, encoding="utf-8")
    return folder


@pytest.mark.long
def test_an_interrupted_run_ends_with_the_same_bits(train, whole, tmp_path):
    shown = (whole / "shown.txt").read_text(encoding="utf-8")
    assert "detection_accuracy" in shown
    assert "all are original" in shown
    train(tmp_path, *CONSTANT, "--num_train_steps=8")
    assert "resuming at step 8" in train(tmp_path, *CONSTANT)
    expected, found = (
        weights(folder / "model" / native.WEIGHTS_PREFIX) for folder in (whole, tmp_path)
    )
    assert sorted(expected) == sorted(found)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    metadata = native.read_metadata(str(whole / "model"))
    assert metadata["task"] == "replaced_token_detection"


def test_its_model_is_an_encoder_like_any_other(train, whole, tmp_path, result_of):
    """It is loaded for another task, carried on, and converted."""
    folder = str(whole / "model")
    detector = native.load_model(folder)
    assert isinstance(detector, AlbertReplacedTokenDetector)
    classifier = from_preset(folder, AlbertClassifier, num_classes=2)
    for left, right in zip(detector.encoder.variables, classifier.encoder.variables, strict=True):
        np.testing.assert_array_equal(left, right)
    for kind in ("huggingface", "google"):
        output = str(tmp_path / kind)
        made = result_of(
            "albert_tf.convert", f"--input={folder}", f"--format={kind}", f"--output={output}"
        )
        assert made.returncode == 0, made.stderr
        assert f"{kind} has no ALBERT that detects replaced tokens" in made.stdout
    train(tmp_path / "second", f"--init_checkpoint={folder}", "--num_train_steps=2")


def test_flags_of_the_other_objective(result_of, pretraining_command):
    _, module, *arguments = pretraining_command()
    result = result_of(module, *arguments, "--detection_weight=3")
    assert result.returncode == 2
    assert "--detection_weight is for --objective=replaced_tokens" in result.stderr


def test_a_run_keeps_its_objective(result_of, pretraining_command):
    _, module, *arguments = pretraining_command(num_train_steps=2)
    assert result_of(module, *arguments).returncode == 0
    result = result_of(module, *arguments, *FLAGS)
    assert result.returncode == 2
    assert "objective was 'mlm' and is 'replaced_tokens'" in result.stderr


def test_its_checkpoints_are_not_evaluated_elsewhere(whole, result_of, pretraining_command, work):
    _, module, *arguments = pretraining_command(output_dir=whole)
    result = result_of(module, *arguments, "--mode=continuous_eval", f"--eval_data={work / 'sop'}")
    assert result.returncode == 2
    assert "is a run of --objective=replaced_tokens" in result.stderr


@pytest.mark.parametrize(("share", "loss"), [(0.5, np.log(2)), (0.0, 0.0)])
def test_baselines(share, loss):
    found = detection_baselines({"replaced_share": share})
    assert found["detection_loss"][0] == pytest.approx(loss)
    assert found["detection_accuracy"][0] == 1 - share
    assert not detection_baselines({})
