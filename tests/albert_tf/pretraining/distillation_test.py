"""Pre-training with a teacher as a user runs it: interrupted, in bfloat16, refused."""

import json

import pytest

from albert_tf.checkpoints import native
from tests.run_results import check_tensors, figures

CONSTANT = ("--schedule=wsd", "--decay_share=0")  # A shorter run has the same rates.
TERMS = "--distillation=logits:5,masked_words:2,cosine:1,hidden:1"
MODEL = f"model/{native.WEIGHTS_PREFIX}"


@pytest.fixture
def distill(pretrain, work, tmp_path):
    """(folder, *flags) -> the output of a run of one layer, with the teacher of two."""
    teacher = tmp_path / "teacher"
    config = json.loads((work / "config.json").read_text())
    deeper = tmp_path / "deeper.json"
    deeper.write_text(json.dumps({**config, "num_hidden_layers": 2}))
    begun = {"num_train_steps": 2, "num_warmup_steps": 0}
    made = pretrain(config_file=deeper, output_dir=teacher, **begun)
    assert made.returncode == 0, made.stderr

    def run(folder, *flags, code=0, **others):
        ended = pretrain(*CONSTANT, f"--teacher={teacher}", *flags, output_dir=folder, **others)
        assert ended.returncode == code, ended.stderr
        return ended.stdout if code == 0 else ended.stderr

    return run


@pytest.mark.usefixtures("eager")
def test_an_interrupted_run_ends_with_the_same_bits(distill, tmp_path, work):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    flags = (TERMS, "--num_train_steps=4", "--checkpoint_steps=2", f"--eval_data={work / 'sop'}")
    shown = distill(whole, *flags)
    assert "5 logits, 2 masked_words, 1 cosine, 1 hidden" in shown
    assert "masked_lm_loss" in shown and "Next: python -m albert_tf.run_finetuning" in shown
    assert {"distill_logits", "weighted_masked_lm_loss"} <= set(figures(whole)[0])
    distill(parts, *flags, "--num_train_steps=2")
    assert "resuming at step 2" in distill(parts, *flags)
    check_tensors(parts / MODEL, whole / MODEL)
    assert native.read_metadata(str(whole / "model"))["task"] == "pretraining"
    # The student has the teacher's shared layer, and another number of iterations.
    start = ("--num_train_steps=1", "--num_warmup_steps=0", "--precision=mixed_bfloat16")
    distill(tmp_path / "half", f"--init_checkpoint={tmp_path / 'teacher'}", *start)
    message = distill(parts, "--mode=continuous_eval", *flags[-1:], code=2)
    assert "is a run of --distillation=hidden, whose checkpoints have one layer more" in message
    flags = ("--objective=replaced_tokens", "--distillation=relations")
    message = distill(tmp_path / "none", *flags, code=2)
    assert "A --teacher does not go with ReplacedTokensObjective: it needs masked" in message
    assert not (tmp_path / "none").exists()
