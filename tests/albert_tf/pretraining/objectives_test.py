"""The objective of replaced tokens as a user runs it: the same bits after an interruption, a model
folder that fine-tunes and converts, sentences for what does not go together.
"""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertClassifier, AlbertReplacedTokenDetector, from_preset
from albert_tf.checkpoints import native
from albert_tf.pretraining import open_records
from albert_tf.pretraining.objectives import detection_baselines, with_noise
from tests.run_results import check_tensors

FLAGS = ("--objective=replaced_tokens", "--generator_size=0.5")
CONSTANT = ("--schedule=wsd", "--decay_share=0")  # A shorter run has the same rates.


def test_noise_is_a_function_of_seed_and_step(work):
    data = open_records(str(work / "sop"), batch_size=8)

    def noise(seed=1, start=0, context=None, count=3):
        batches = with_noise(data.batches, seed, data.sizes)(
            start_step=start, input_context=context
        )
        return np.stack([each["sampling_noise"].numpy() for each in batches.take(count)])

    whole = noise()
    assert whole.shape[:2] == (3, 8) and 0 <= whole.min() < 0.1 and 0.9 < whole.max() < 1
    np.testing.assert_array_equal(noise(start=1, count=2), whole[1:])
    assert not np.array_equal(noise(seed=2), whole)
    assert not np.array_equal(whole[0], whole[1])
    hosts = [noise(context=tf.distribute.InputContext(2, host, 2)) for host in (0, 1)]
    np.testing.assert_array_equal(np.concatenate(hosts, axis=1), whole)


@pytest.fixture
def train(work, pretrain):
    """(folder, *flags) -> the output of a run of replaced tokens that ends well."""

    def run(folder, *flags: str) -> str:
        ended = pretrain(*FLAGS, *flags, eval_data=work / "sop", output_dir=folder)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@pytest.fixture
def run(train, eagerly, tmp_path_factory):
    """The folder of a short run, which is made once; `shown.txt` is what it printed."""
    folder = tmp_path_factory.getbasetemp() / "a_run_of_replaced_tokens"
    if not (folder / "shown.txt").exists():
        with eagerly():
            shown = train(folder, "--num_train_steps=2", "--num_warmup_steps=0")
        (folder / "shown.txt").write_text(shown, encoding="utf-8")
    return folder


@pytest.mark.long
def test_an_interrupted_run_ends_with_the_same_bits(train, tmp_path):
    for folder, steps in (("whole", (12,)), ("parts", (8, 12))):
        for number in steps:
            shown = train(tmp_path / folder, *CONSTANT, f"--num_train_steps={number}")
    assert "resuming at step 8" in shown
    model = f"model/{native.WEIGHTS_PREFIX}"
    check_tensors(tmp_path / "parts" / model, tmp_path / "whole" / model)


def test_its_model_is_an_encoder_like_any_other(pretrain, run, tmp_path, result_of, eagerly):
    """It is loaded for another task, carried on, and converted."""
    shown = (run / "shown.txt").read_text(encoding="utf-8")
    assert "detection_accuracy" in shown and "all are original" in shown
    folder = str(run / "model")
    assert native.read_metadata(folder)["task"] == "replaced_token_detection"
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
        assert f"{kind} has no ALBERT for replaced tokens" in made.stdout
    with eagerly():
        flags = {"init_checkpoint": folder, "num_train_steps": 1, "num_warmup_steps": 0}
        second = pretrain(*FLAGS, **flags)
    assert second.returncode == 0, second.stderr


def test_what_does_not_go_together(pretrain, run, work):
    evaluation = ("--mode=continuous_eval", f"--eval_data={work / 'sop'}")
    for flags, others, message in (
        (["--detection_weight=3"], {}, "--detection_weight is for --objective=replaced_tokens"),
        ([], {"output_dir": run}, "objective was 'replaced_tokens' and is 'mlm'"),
        (evaluation, {"output_dir": run}, "is a run of --objective=replaced_tokens"),
    ):
        result = pretrain(*flags, **others)
        assert result.returncode == 2 and message in result.stderr


@pytest.mark.parametrize(("share", "loss"), [(0.5, np.log(2)), (0.0, 0.0)])
def test_baselines(share, loss):
    found = detection_baselines({"replaced_share": share})
    assert found["detection_loss"][0] == pytest.approx(loss)
    assert found["detection_accuracy"][0] == 1 - share
    assert not detection_baselines({})
