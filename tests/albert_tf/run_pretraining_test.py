"""run_pretraining as a process: with several workers, in every mode."""

from __future__ import annotations

import json
import signal
import socket
import time

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.training import failures
from albert_tf.training.preemption import EXIT_CODE
from albert_tf.training.report.metrics_file import read_metrics


def output_of(process) -> str:
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0, output[-4000:]
    return output


def weights(folder) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(folder / "model" / native.WEIGHTS_PREFIX))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def free_ports(number: int) -> list[int]:
    servers = [socket.socket() for _ in range(number)]
    for server in servers:
        server.bind(("127.0.0.1", 0))
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


def wait_for(path, process) -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()[0][-4000:]
        time.sleep(0.02)


def test_two_workers_equal_one_process(pretraining_command, start_program, tmp_path, work):
    """Two processes that talk over loopback; only the first writes. The other one is killed, the
    first says so, and both go on where they were; one gets a signal, and both stop.
    """
    config = work / "no_dropout.json"
    values = json.loads((work / "config.json").read_text())
    values.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    config.write_text(json.dumps(values))
    flags = {"config_file": config, "eval_data": work / "sop"}
    flags = {**flags, "num_train_steps": 100, "steps_per_loop": 20, "checkpoint_steps": 20}
    alone = start_program(pretraining_command(**flags, output_dir=tmp_path / "alone"))

    def start_workers(fresh=False):
        cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
        configs = [{"cluster": cluster, "task": {"type": "worker", "index": i}} for i in (0, 1)]
        command = pretraining_command(**flags, distribution="multi_worker_mirrored")
        return [
            start_program(command, fresh=fresh and index == 0, TF_CONFIG=json.dumps(config))
            for index, config in enumerate(configs)
        ]

    first, second = start_workers()
    wait_for(tmp_path / "run" / "checkpoints" / "step-20.index", first)
    second.kill()
    output = first.communicate(timeout=300)[0]
    assert first.returncode == failures.WORKER_LOST, output[-4000:]
    assert "error: another worker is gone" in output and "Traceback" not in output

    first, second = start_workers()
    for line in first.stdout:
        if "resuming at step" in line:  # Both now compile the update that follows.
            break
    second.send_signal(signal.SIGTERM)
    outputs = [process.communicate(timeout=300)[0] for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [EXIT_CODE] * 2, outputs
    step = int(line.split()[-1]) + 1
    assert f"stopped by a signal to another worker at step {step}; run the same" in outputs[0]
    assert f"stopped by SIGTERM at step {step}; run the same command to go on" in outputs[1]

    # Both issue collective operations in the same order, whatever their seeds of hashes.
    outputs = [output_of(process) for process in (alone, *start_workers(fresh=True))]
    assert "resuming at step" in outputs[1]
    assert "Held-out evaluation" in outputs[1] and "Held-out evaluation" not in outputs[2]
    assert "MultiWorkerMirroredStrategy, replicas: 2" in outputs[1]
    expected, found = weights(tmp_path / "alone"), weights(tmp_path / "run")
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
    rows = [read_metrics(str(tmp_path / name / "metrics.csv")) for name in ("alone", "run")]
    for left, right in zip(*rows):
        assert float(left["loss"]) == pytest.approx(float(right["loss"]), abs=1e-5)
    assert len(rows[0]) == len(rows[1]) == 6


def test_evaluation_beside_the_training(pretraining_command, start_program, tmp_path, work):
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
    output = output_of(start_program(pretraining_command(mode="eval", eval_data=both)))
    assert f"{float(rows[-1]['next_sentence_loss']):.4f}" in output
