"""What a run shows and stores while it goes on."""

import pytest
import tensorflow as tf

from albert_tf.training.report.metrics_file import read_metrics
from albert_tf.training.report.progress import Reporter, StepCost


def reporter(folder, start_step=0, eval_metrics=("loss", "accuracy")):
    cost = StepCost(tokens=100, flops=1e6, machine_flops_per_second=1e9)
    return Reporter(str(folder), ("loss",), eval_metrics, 1000, start_step, cost)


def tags(folder):
    """Names and values in the TensorBoard files of a folder."""
    found = {}
    for path in folder.glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found[value.tag] = tf.make_ndarray(value.tensor)
    return found


def test_tensorboard_and_csv(tmp_path, capsys):
    found = reporter(tmp_path)
    details = {"trust_ratio": {"kernel": tf.constant(0.5)}, "update": {"norm": tf.constant(2.0)}}
    metrics = {"loss": 3.0, "learning_rate": 0.1, "gradient_norm": 1.5}
    found.train(1000, metrics, details)
    found.evaluation(1000, {"loss": 2.5, "accuracy": 0.25})
    found.examples(1000, "**right**")
    found.close()
    train = tags(tmp_path / "tensorboard" / "train")
    expected = {**metrics, "trust_ratio/kernel": 0.5, "update/norm": 2.0}
    assert {name: float(train[name]) for name in expected} == pytest.approx(expected)
    assert train["tokens_per_second"] > 0
    share = 1e6 * float(train["tokens_per_second"]) / 100 / 1e9
    assert float(train["share_of_matmul"]) == pytest.approx(share, rel=1e-3)
    held_out = tags(tmp_path / "tensorboard" / "eval")
    assert float(held_out["accuracy"]) == 0.25 and held_out["predictions"].item() == b"**right**"
    rows = read_metrics(str(tmp_path / "metrics.csv"))
    assert [(row["split"], row["loss"], row["accuracy"]) for row in rows] == [
        ("train", "3", ""),
        ("eval", "2.5", "0.25"),
    ]
    shown = capsys.readouterr().out
    assert (
        "step 1000/1000  loss 3.0000  lr 1.00e-01" in shown and "of matmul)  ETA 0:00:00" in shown
    )
    assert "evaluation at step 1000: loss 2.5000  accuracy 0.2500" in shown


def test_a_resumed_run_drops_what_it_does_again(tmp_path):
    first = reporter(tmp_path)
    for step in (10, 20, 30):
        first.train(step, {"loss": float(step), "learning_rate": 0.1, "gradient_norm": 1.0})
    first.close()
    second = reporter(tmp_path, start_step=20, eval_metrics=("loss", "perplexity"))
    second.evaluation(20, {"loss": 1.0, "perplexity": 2.0})
    second.close()
    rows = read_metrics(str(tmp_path / "metrics.csv"))
    assert [(row["step"], row["loss"], row["perplexity"]) for row in rows] == [
        ("10", "10", ""),
        ("20", "20", ""),
        ("20", "1", "2"),
    ]


@pytest.mark.parametrize("torn", ["3", "30,tra", "30,train,1.5,", "\0" * 40, "30,train,\0\0,,,,\n"])
def test_a_row_that_a_power_cut_tore(tmp_path, torn):
    first = reporter(tmp_path)
    first.train(10, {"loss": 2.0, "learning_rate": 0.1, "gradient_norm": 1.0})
    first.close()
    with open(tmp_path / "metrics.csv", "a") as file:
        file.write(torn)
    reporter(tmp_path, start_step=30).close()
    assert [row["step"] for row in read_metrics(str(tmp_path / "metrics.csv"))] == ["10"]
