"""The serving benchmark: its table from known times, and a real worker on a tiny export."""

from __future__ import annotations

import dataclasses
import runpy
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from albert_tf.checkpoints import native
from albert_tf.models import AlbertClassifier
from benchmarks import serving
from benchmarks.processes import turns_of
from data_pipeline.tokenizers.loading import load_tokenizer

VOCABULARY = Path(__file__).parents[1] / "goldens" / "hf_tokenizer" / "spiece.model"


def test_a_row_compares_with_ours_batched_alike():
    def turn(seconds: float, answers: str, latencies: list[float]) -> dict:
        return {
            "seconds": seconds,
            "latencies": latencies,
            "answers": list(answers),
            "peak_bytes": 5 << 20,
        }

    turns = {
        "ours": [turn(2.0, "aabb", [0.1] * 4), turn(2.0, "aabb", [0.2] * 4)],
        "ours, batched 32x1x1": [turn(1.0, "aabb", [0.1] * 4)],
        "peer, batched 32x1x1": [turn(2.0, "aabb", [0.1] * 4)],
        "peer": [turn(4.0, "aaba", [0.01 * number for number in range(101)])],
    }
    ours, batched, merged, peer = serving.rows_of("topics", 2, 8, turns)
    assert (ours["answers_per_s"], batched["answers_per_s"], peer["answers_per_s"]) == (2, 4, 1)
    assert (ours["ours_over_it"], batched["ours_over_it"], peer["ours_over_it"]) == (1, 1, 2)
    assert merged["ours_over_it"] == 2
    assert (peer["p50_ms"], peer["p99_ms"]) == (500, 990)
    assert (batched["same_answers"], peer["same_answers"]) == (1, 0.75)
    assert ours["peak_mb"] == 5


def test_a_queue_merges_requests_as_the_scheduler_does():
    folder = Path(serving.__file__).parent / "workers"
    load = SimpleNamespace(**runpy.run_path(str(folder / "load.py")))
    batches, all_asked = [], threading.Event()

    def ask(rows):
        all_asked.wait()
        batches.append(len(rows))
        return [row.upper() for row in rows]

    merged = load.Batches(ask, **vars(serving.Batching(4, 200_000, 1)))
    with ThreadPoolExecutor(9) as clients:
        requests = [[f"a{number}"] for number in range(8)] + [["b"] * 5]
        asked = [clients.submit(merged, rows) for rows in requests]
        all_asked.set()
        for rows, answers in zip(requests, asked):
            assert answers.result(30) == [row.upper() for row in rows]
    assert sum(batches) == 13 and 5 in batches and len(batches) < 9
    assert max(size for size in batches if size != 5) <= 4
    broken = load.Batches(lambda rows: rows.missing, **vars(serving.Batching(4, 0, 1)))
    with pytest.raises(AttributeError):
        broken(["a"])


@pytest.fixture
def model_dir(tiny_config, tmp_path) -> str:
    tokenizer = load_tokenizer(str(VOCABULARY))
    model = AlbertClassifier(tiny_config.replace(vocab_size=tokenizer.vocab_size), 2)
    metadata = {"max_seq_length": 16, "labels": ["good", "bad"]}
    settings = dataclasses.asdict(tokenizer.settings)
    native.save(model, str(tmp_path / "run" / "model"), metadata, str(VOCABULARY), settings)
    return str(tmp_path / "run" / "model")


@pytest.mark.table
def test_our_worker_answers_alike_with_and_without_the_scheduler(model_dir, tmp_path):
    model = serving.prepare(model_dir, tmp_path)
    batching = {"a": None, "b": vars(serving.Batching(4, 1000, 2))}
    workers = [dataclasses.replace(serving.OURS, name=name) for name in batching]
    case = {**model, "rows": ["a b", "c", "d"] * 4, "batch": 2, "concurrency": 3}
    turns = turns_of(
        workers,
        lambda worker: {**case, "batching": batching[worker.name]},
        peers="",
        log=tmp_path / "log",
    )
    assert set(turns) == set(batching), (tmp_path / "log").read_text()
    for taken in turns.values():
        assert len(taken[-1]["latencies"]) == 6 and len(taken[-1]["answers"]) == 12
        assert set(taken[-1]["answers"]) <= {"good", "bad"}
        assert taken[-1]["answers"] == turns["a"][0]["answers"]
