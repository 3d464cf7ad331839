"""run_pretraining --train_text: without records, and exactly on after an interruption."""

import json

import pytest

from albert_tf.checkpoints import native
from albert_tf.keras_compat import keras
from albert_tf.training.hooks import preemption
from tests.run_results import check_tensors


@pytest.fixture
def run(run_program, work, tmp_path):
    """Flags -> the exit code of a short run in this process."""

    def run(**flags):
        keras.backend.clear_session()
        values = {
            "config_file": work / "config.json",
            "train_text": work / "corpus.txt",
            "vocab_file": work / "vocabulary" / "spiece.model",
            "max_seq_length": 32,
            "fast": "off",
            "output_dir": tmp_path / "run",
            "train_batch_size": 8,
            "num_train_steps": 26,
            "num_warmup_steps": 2,
            "steps_per_loop": 24,
            "checkpoint_steps": 50,
            "distribution": "one_device",
            **flags,
        }
        given = (f"--{name}={value}" for name, value in values.items() if value is not None)
        with pytest.raises(SystemExit) as end:
            run_program("albert_tf.run_pretraining", *given)
        return end.value.code

    return run


@pytest.mark.long
def test_an_interrupted_run_ends_with_the_same_bits(run, work, tmp_path, monkeypatch, capsys):
    """Stopped in its second epoch, with dropout and dynamic masks; only on the same text."""
    assert not run(output_dir=tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(preemption.StopRequest, "arrived", lambda self, strategy: True)
        assert run() == preemption.EXIT_CODE
    fixed = json.loads((tmp_path / "run" / "run.json").read_text())
    assert fixed["records"] is None and len(fixed["text"]) == 64
    other = tmp_path / "other.txt"
    other.write_text((work / "corpus.txt").read_text().replace("cat", "dog"))
    assert run(train_text=other, ngram=2) == 2
    errors = capsys.readouterr().err
    assert "text was" in errors and "ngram was 3 and is 2" in errors
    records = {"train_text": None, "train_data": work / "sop", "max_seq_length": None}
    assert run(**records, vocab_file=None) == 2
    assert "records was None" in capsys.readouterr().err

    assert not run()
    assert "resuming at step 24" in capsys.readouterr().out
    model = f"model/{native.WEIGHTS_PREFIX}"
    check_tensors(tmp_path / "run" / model, tmp_path / "whole" / model)


def test_flags_that_do_not_go_together(run, work, capsys):
    for flags, says in (
        ({"train_data": work / "sop"}, "--train_data and --train_text are both given"),
        (
            {"train_text": None, "train_data": work / "sop"},
            "--max_seq_length applies to --train_text only",
        ),
        ({"vocab_file": None}, "--vocab_file is missing"),
    ):
        assert run(**flags) == 2
        assert says in capsys.readouterr().err
