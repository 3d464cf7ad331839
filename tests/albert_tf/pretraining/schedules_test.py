"""Runs whose share of masks and size of batches change: an interruption changes nothing."""

import pytest

from albert_tf.checkpoints import native
from albert_tf.keras_compat import keras
from tests.run_results import check_tensors

MASKS, SIZES = "--mask_schedule=0.3@0,0.1@3", "--batch_size_schedule=8@0,16@2"
CONSTANT = ("--schedule=wsd", "--decay_share=0")
OBJECTIVES = {
    "mlm": [],
    "recurring_spans": ["--recurring_mask_share=0.5"],
    "replaced_tokens": ["--generator_size=0.5", "--gradient_accumulation_steps=2"],
}


@pytest.fixture
def train(work, pretrain, tmp_path):
    """(folder, objective, updates) -> the output of a run that ends well."""

    def run(folder: str, objective: str, num_train_steps: int) -> str:
        keras.backend.clear_session()
        more = [f"--objective={objective}", *OBJECTIVES[objective]]
        output = {"output_dir": tmp_path / folder, "num_train_steps": num_train_steps}
        output |= {"num_warmup_steps": 0, "train_batch_size": None}
        ended = pretrain(MASKS, SIZES, *CONSTANT, *more, **output)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "objective",
    [name if name == "mlm" else pytest.param(name, marks=pytest.mark.table) for name in OBJECTIVES],
)
def test_an_interrupted_run_ends_with_the_same_bits(train, pretrain, tmp_path, objective):
    """At each change; a run keeps its schedules."""
    shown = train("whole", objective, 4)
    assert "256 (8 x 32) from step 0, 512 (16 x 32) from step 2" in shown
    train("parts", objective, 2)
    for step in (2, 3):
        assert f"resuming at step {step}" in train("parts", objective, step + 1)
    model = f"model/{native.WEIGHTS_PREFIX}"
    check_tensors(tmp_path / "parts" / model, tmp_path / "whole" / model)
    others = {"output_dir": tmp_path / "parts", "num_train_steps": 5}
    ended = pretrain("--mask_schedule=0.3@0", *CONSTANT, "--train_batch_size=8", **others)
    assert ended.returncode == 2
    assert "mask_schedule was '0.3@0,0.1@3' and is '0.3@0'" in ended.stderr
    assert "train_batch_size was '8@0,16@2' and is 8" in ended.stderr
