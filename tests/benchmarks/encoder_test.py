"""The encoder benchmark: its table from known times, and real workers on a tiny case."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks import encoder, encoder_cases
from benchmarks.processes import Measurement, Worker, medians, turns_of

CASE = encoder_cases.Case("tiny", (3, 5), "classification", 8)


def test_real_lengths_are_like_the_sentences_they_stand_for():
    lengths = encoder_cases.real_lengths(2000, 23, 48)
    assert lengths == encoder_cases.real_lengths(2000, 23, 48)
    assert lengths[0] == max(lengths) == 48 and min(lengths) >= 4
    assert np.mean(lengths) == pytest.approx(23, rel=0.05)


def test_a_row_compares_with_the_limit_and_the_best_tensorflow_peer():
    seconds = {
        "ours, packed": 1.0,
        "KerasHub": 3.0,
        "Model Garden": 2.0,
        "Hugging Face PyTorch": 0.5,
        "matmul limit": 4.0,
    }
    measured = {name: Measurement(value, 3 << 20) for name, value in seconds.items()}
    full = encoder_cases.Case("full", (128,) * 8)
    rows = {row["library"]: row for row in encoder.rows_of(full, "forward", "float32", measured)}
    assert [rows[name]["over_best_tf_peer"] for name in list(seconds)[:4]] == [2.0, 0.67, 1.0, 4.0]
    assert rows["ours, packed"]["real_tokens_per_s"] == 1024
    assert rows["ours, packed"]["peak_mb"] == 3
    # 24 products of the benchmark: 1.1e11 x 2; ALBERT base: 12 layers, 1.7e8 a token forward.
    assert rows["ours, packed"]["share_of_matmul"] == pytest.approx(4 * 0.78, rel=0.05)
    training = encoder.rows_of(full, "training", "float32", measured)[0]
    assert training["share_of_matmul"] == pytest.approx(
        3 * rows["ours, packed"]["share_of_matmul"], rel=1e-3
    )


@pytest.mark.table
@pytest.mark.parametrize("which", ["forward", "training"])
def test_our_workers_take_turns(which, tmp_path):
    workers = [encoder.LIBRARIES[0]]
    turns = turns_of(
        workers,
        lambda worker: CASE.request(worker, which, "float32"),
        peers="",
        log=tmp_path / "log",
    )
    assert set(turns) == {worker.name for worker in workers}, (tmp_path / "log").read_text()
    for measurement in medians(turns).values():
        assert 0 < measurement.seconds < 60 and measurement.peak_bytes > 10 << 20


def test_a_worker_that_lacks_a_case_or_dies_is_left_out(tmp_path, capfd):
    script = tmp_path / "worker.py"
    script.write_text(
        "import sys, json\n"
        "for number, line in enumerate(sys.stdin):\n"
        "    if sys.argv[1] == 'dies' and number == 2: sys.exit('no memory')\n"
        "    answer = {'ready': sys.argv[1] != 'lacks'} if number == 0 else {'seconds': 9.0}\n"
        "    print(json.dumps({**answer, 'peak_bytes': number}), flush=True)\n"
    )
    workers = [Worker(name, (str(script), name), "", "ours") for name in ("works", "lacks", "dies")]
    turns = turns_of(workers, lambda worker: {}, peers="", log=tmp_path / "log")
    assert set(turns) == {"works"}
    assert medians(turns)["works"].seconds == 9.0
    assert "dies ended without an answer" in capfd.readouterr().out
    assert "no memory" in (tmp_path / "log").read_text()
    assert workers[0].python("").samefile(sys.executable)
