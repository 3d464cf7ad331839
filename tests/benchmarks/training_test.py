"""The training benchmark: the kind that runs the whole loop, on a short text."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import training
from benchmarks.processes import medians, turns_of
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.loading import load_tokenizer

VOCABULARY = Path(__file__).parents[2] / "albert_tf/weights/albert-small-en/spiece.model"


@pytest.mark.table
def test_the_loop_is_timed(tmp_path):
    text, data = tmp_path / "text.txt", str(tmp_path / "data")
    text.write_text(
        "\n\n".join("\n".join(f"Word {i} of {j}." for j in range(9)) for i in range(60))
    )
    settings = PretrainingSettings(max_seq_length=16, masking="dynamic")
    tokenizer = load_tokenizer(str(VOCABULARY))
    create_pretraining_data(Corpus(str(text)), data, tokenizer, settings)
    case = {"preset": "albert-small-en", "data": data, "batch_size": 2, "precision": "float32"}
    workers = [worker for worker in training.WORKERS if worker.command[1] == "loop"]
    log = tmp_path / "log"
    turns = turns_of(workers, lambda _: case, peers="", log=log)
    assert turns and medians(turns)["whole loop"].seconds > 0, log.read_text()
