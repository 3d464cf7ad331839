"""The benchmark of data: its tables from a real, tiny run."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from benchmarks import pretraining_data
from data_pipeline.errors import UserError

ROOT = Path(__file__).parents[2]
TEXT = "\n\n".join("\n".join(f"Word {i} of line {j}." for j in range(9)) for i in range(60))


def run(tmp_path, *arguments):
    from data_pipeline.tokenizers.vocabulary import train_vocabulary

    (tmp_path / "text.txt").write_text(TEXT + "\n")
    vocabulary = train_vocabulary(str(tmp_path / "text.txt"), str(tmp_path / "vocabulary"), 40)
    command = [
        sys.executable, "-m", "benchmarks.pretraining_data", f"--text={tmp_path}/text.txt",
        f"--vocab_file={vocabulary}", f"--output={tmp_path}/out", *arguments,
    ]  # fmt: skip
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.table
def test_making_records(tmp_path):
    shown = run(
        tmp_path, "--rounds=1", "--megabytes=0.05", "--scaling_megabytes=0.1",
        "--memory_megabytes=0.1", "--scaling_rounds=1", "--peers=/nowhere",
    )  # fmt: skip
    for case in (
        "SentencePiece alone",
        "ours, static, 4 copies",
        "ours, dynamic",
        "tf.data.Dataset, dynamic",
        "times one",
    ):
        assert case in shown
    assert "Model Garden" not in shown and "MB of memory" in shown
    rows = (tmp_path / "out" / "pretraining_data.csv").read_text().splitlines()
    assert rows[0] == "case,MB,seconds,MB/s,of SentencePiece,peak MB" and len(rows) == 7


def test_a_worker_that_fails_says_why(monkeypatch, capfd):
    monkeypatch.setattr(pretraining_data, "FLAGS", types.SimpleNamespace(scratch=""))
    with pytest.raises(UserError, match="ours masking=none: a worker failed, see above"):
        pretraining_data.run(sys.executable, "ours", Path("text"), "nowhere.model", "masking=none")
    assert "nowhere.model" in capfd.readouterr().err
