"""The benchmark of the first minute of fine-tuning; commands and workers are replaced."""

from __future__ import annotations

import csv
import json
import types
from pathlib import Path

import pytest

from benchmarks import finetuning_start

VOCABULARY = Path(__file__).parents[1] / "goldens" / "wordpiece" / "vocab.txt"


@pytest.fixture
def options(tmp_path, monkeypatch) -> types.SimpleNamespace:
    (tmp_path / "squad.json").write_text("{}")
    given = types.SimpleNamespace(
        squad=str(tmp_path / "squad.json"),
        vocab_file=str(VOCABULARY),
        preset="albert-tiny",
        sentences=64,
        rounds=3,
        peers=str(tmp_path),
        output=str(tmp_path / "out"),
    )
    monkeypatch.setattr(finetuning_start, "FLAGS", given)
    return given


def test_tables(options, monkeypatch, tmp_path, capsys):
    """Medians of the turns; per core, since Hugging Face's tokenizer uses several."""
    (tmp_path / "torch" / "bin").mkdir(parents=True)
    (tmp_path / "torch" / "bin" / "python").touch()
    turns = {"windows_ours.py": [(1.0, 1.0), (2.0, 2.0), (9.0, 9.0)], "windows_huggingface.py": []}
    turns["windows_huggingface.py"] = [(4.0, 8.0)] * 3

    def run(command, **kwargs):
        case = json.loads(Path(command[-1]).read_text())
        assert (Path(case["data_dir"]) / "train-v1.1.json").read_text() == "{}"
        seconds, core_seconds = turns[Path(command[1]).name].pop()
        answer = {"questions": 80, "windows": 90, "seconds": seconds, "core seconds": core_seconds}
        return types.SimpleNamespace(stdout=f"A library's greeting\n{json.dumps(answer)}\n")

    monkeypatch.setattr(finetuning_start.subprocess, "run", run)
    seconds = {32: 5.0, 64: 7.5}
    monkeypatch.setattr(
        finetuning_start, "seconds_to_first_update", lambda folder, sentences: seconds[sentences]
    )
    finetuning_start.main()
    with open(Path(options.output) / "finetuning_windows.csv") as file:
        ours, other = csv.DictReader(file)
    assert (ours["questions a second"], other["questions a second"]) == ("40", "20")
    assert (ours["a second of a core"], other["a second of a core"]) == ("40", "10")
    assert other["ours, times as many"] == "4.0"
    with open(Path(options.output) / "finetuning_start.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["times a single batch"] for row in rows] == ["1.0", "1.5"]
    assert "seconds to the first update" in capsys.readouterr().out


def test_the_clock_stops_at_the_first_row_of_figures(options, monkeypatch, tmp_path):
    """The command is replaced by one that writes figures and would go on for ever."""
    ended = []

    class Command:
        def __init__(self, command, **kwargs):
            (run,) = (part.split("=")[1] for part in command if part.startswith("--output_dir"))
            Path(run).mkdir()
            Path(run, "metrics.csv").write_text("step,loss\n1,0.5\n")

        def poll(self):
            return None

        kill = wait = lambda self: ended.append(self)

    monkeypatch.setattr(finetuning_start.subprocess, "Popen", Command)
    assert 0 <= finetuning_start.seconds_to_first_update(tmp_path, 64) < 60
    assert len(ended) == 2
    assert len((tmp_path / "train.tsv").read_text().splitlines()) == 65
