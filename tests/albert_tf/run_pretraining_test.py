"""run_pretraining as a process: with several workers, in every mode."""

import re
import signal

import pytest

from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.training import failures
from albert_tf.training.hooks.preemption import EXIT_CODE
from albert_tf.training.report.metrics_file import read_metrics
from tests.run_results import check_tensors, wait_for


def output_of(process) -> str:
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0, output[-4000:]
    return output


@pytest.fixture
def without_dropout(work):
    """Flags of a run that two workers can equal."""
    config = AlbertConfig.from_json_file(str(work / "config.json"))
    config = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    config.to_json_file(str(work / "no_dropout.json"))
    return {"config_file": work / "no_dropout.json", "eval_data": work / "sop"}


def test_two_workers_equal_one_process(
    pretraining_command, pretrain, start_workers, tmp_path, without_dropout, eagerly
):
    """Only the first writes. Both issue collective operations in the same order, whatever their
    seeds of hashes, and change the size of batches at the same step.
    """
    schedules = {"batch_size_schedule": "8@0,12@2", "mask_schedule": "0.3@0,0.15@4"}
    common = {**without_dropout, **schedules, "train_batch_size": None, "num_train_steps": 6}
    flags = {**common, "distribution": "multi_worker_mirrored"}
    workers = start_workers(pretraining_command(**flags), fresh=True)
    with eagerly():
        alone = pretrain(**common, output_dir=tmp_path / "alone")
    assert alone.returncode == 0, alone.stderr
    outputs = [output_of(worker) for worker in workers]
    assert "Held-out evaluation" in outputs[0] and "Held-out evaluation" not in outputs[1]
    assert "MultiWorkerMirroredStrategy, replicas: 2" in outputs[0]
    model = f"model/{native.WEIGHTS_PREFIX}"
    check_tensors(tmp_path / "run" / model, tmp_path / "alone" / model, 1e-5)
    rows = [read_metrics(str(tmp_path / name / "metrics.csv")) for name in ("alone", "run")]
    for left, right in zip(*rows, strict=True):
        assert float(left["loss"]) == pytest.approx(float(right["loss"]), abs=1e-5)
    assert len(rows[0]) == 4


@pytest.mark.table
def test_two_workers_go_on_where_they_were(
    pretraining_command, start_workers, tmp_path, without_dropout
):
    """The second one is killed, and the first says so; one gets a signal, and both stop."""
    flags = {"num_train_steps": 100, "steps_per_loop": 20, "checkpoint_steps": 20}
    flags |= {**without_dropout, "distribution": "multi_worker_mirrored"}
    command = pretraining_command(**flags)
    first, second = start_workers(command)
    wait_for(tmp_path / "run" / "checkpoints" / "step-20.index", first)
    second.kill()
    output = first.communicate(timeout=300)[0]
    assert first.returncode == failures.WORKER_LOST, output[-4000:]
    assert "error: another worker is gone" in output and "Traceback" not in output

    first, second = start_workers(command)
    for line in first.stdout:
        if "resuming at step" in line:  # Both now compile the update that follows.
            break
    second.send_signal(signal.SIGTERM)
    outputs = [process.communicate(timeout=300)[0] for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [EXIT_CODE] * 2, outputs
    step = int(line.split()[-1]) + 1
    assert f"stopped by a signal to another worker at step {step}; run the same" in outputs[0]
    assert f"stopped by SIGTERM at step {step}; run the same command to go on" in outputs[1]

    outputs = [output_of(process) for process in start_workers(command)]
    assert f"resuming at step {step}" in outputs[0]
    steps = [row["step"] for row in read_metrics(str(tmp_path / "run" / "metrics.csv"))]
    assert steps == ["20", "40", "60", "80", "100", "100"]


def test_evaluation_beside_the_training(
    pretraining_command, pretrain, start_program, tmp_path, work, eagerly
):
    """Trained on one sentence objective, evaluated on both, by a process of its own."""
    trainer = start_program(pretraining_command(mode="train", eval_data=work / "sop"))
    wait_for(tmp_path / "run" / "run.json", trainer)
    both = f"{work / 'sop'},{work / 'nsp'}"
    follower = start_program(pretraining_command(mode="continuous_eval", eval_data=both))
    assert "Held-out evaluation" not in output_of(trainer)
    output = output_of(follower)
    for name in ("masked_lm_perplexity", "sentence_order_accuracy", "next_sentence_accuracy"):
        assert name in output
    rows = read_metrics(str(tmp_path / "run" / "continuous_eval" / "metrics.csv"))
    assert rows[-1]["step"] == "12" and rows[-1]["split"] == "eval"
    with eagerly():
        again = pretrain(mode="eval", eval_data=both)
    loss = float(re.search(r"^ *next_sentence_loss +(\d\.\d+)", again.stdout, re.M)[1])
    assert loss == pytest.approx(float(rows[-1]["next_sentence_loss"]), abs=1e-3)
