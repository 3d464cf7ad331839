"""The benchmark of whole fine-tuning commands: this project's, and a peer that is made up."""

from __future__ import annotations

import csv
import json
import types
from pathlib import Path

import pytest

from benchmarks import finetuning
from benchmarks.finetuning import CASES, CommandFailed
from benchmarks.workers import finetuning_data

ROOT = Path(__file__).parents[2]
VOCABULARY = ROOT / "tests" / "goldens" / "wordpiece" / "vocab.txt"
MADE_UP = "\n".join(f"word {number} in a sentence\t{number % 2}" for number in range(40))


def flags(**values) -> types.SimpleNamespace:
    """The values of flags, as their program has them."""
    return types.SimpleNamespace(**{"vocab_file": str(VOCABULARY), **values})


@pytest.fixture
def options(tmp_path) -> types.SimpleNamespace:
    """Flags for 35 and 40 made-up sentences."""
    (tmp_path / "glue" / "SST-2").mkdir(parents=True)
    for split in ("train", "dev"):
        (tmp_path / "glue" / "SST-2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{MADE_UP}\n")
    return flags(
        data_dir=str(tmp_path), preset="albert-tiny", peers="/nowhere", output=f"{tmp_path}/out",
        cases="SST", libraries="", rounds=1, train_examples=35, dev_examples=0,
    )  # fmt: skip


@pytest.mark.long
def test_our_command_from_files_to_the_table(options, monkeypatch, capsys):
    monkeypatch.setattr(finetuning, "FLAGS", options)
    finetuning.main()
    (row,) = csv.DictReader((Path(options.output) / "finetuning.csv").open())
    assert (row["task"], row["train"], row["dev"], row["library"]) == ("SST-2", "35", "40", "ours")
    assert row["times ours"] == "1.0" and 0 <= float(row["score"]) <= 1
    assert 1 < float(row["seconds"]) < 300 and int(row["peak MB"]) > 100
    shown = capsys.readouterr().out
    assert "left out: Hugging Face TFAlbert, KerasHub, Hugging Face PyTorch" in shown


def test_commands_take_turns_and_one_that_fails_is_left_out(options, monkeypatch, capsys, tmp_path):
    """The commands are replaced: a peer reads its request, and another one dies."""
    begun = []

    def run_command(command, log):
        script = Path(command[1]).name
        begun.append(script)
        if script == "finetuning_tf.py":
            raise CommandFailed("exit status 9, see the log")
        if script == "-m":
            (run,) = [Path(flag.split("=")[1]) for flag in command if "--output_dir" in flag]
            run.mkdir()
            result = {"last": {"metrics": {"accuracy": 0.75}}}
            (run / "results.json").write_text(json.dumps({"results": [result]}))
            return 2.0, 3 << 20
        asked = json.loads(Path(command[2]).read_text())
        assert len(finetuning_data.read_rows(asked, "train")) == 35
        assert asked["config"]["hidden_size"] == 128
        finetuning_data.answer(asked, 0.5)
        return 5.0, 0

    for environment in ("tf", "torch"):
        (tmp_path / environment / "bin").mkdir(parents=True)
        (tmp_path / environment / "bin" / "python").touch()
    options.peers, options.rounds = str(tmp_path), 2
    monkeypatch.setattr(finetuning, "FLAGS", options)
    monkeypatch.setattr(finetuning, "run_command", run_command)
    finetuning.main()
    assert begun == ["-m", "finetuning_tf.py", "finetuning_torch.py"] * 2
    rows = list(csv.DictReader((Path(options.output) / "finetuning.csv").open()))
    found = {row["library"]: (row["times ours"], row["score"], row["turns"]) for row in rows}
    assert found == {"ours": ("1.0", "0.75", "2"), "Hugging Face PyTorch": ("2.5", "0.5", "2")}
    assert "TFAlbert, is left out: exit status 9" in capsys.readouterr().out


def test_the_peers_read_the_copies(tmp_path, monkeypatch):
    source = tmp_path / "in"
    (source / "squad").mkdir(parents=True)
    paragraph = {
        "context": "The cats sat.",
        "qas": [
            {"id": "q", "question": " Who?", "answers": [{"text": "The cats", "answer_start": 0}]}
        ],
    }
    content = {"data": [{"paragraphs": [paragraph]}]}
    for split in ("train", "dev"):
        (source / "squad" / f"{split}-v1.1.part.json").write_text(json.dumps(content))
    monkeypatch.setattr(finetuning, "FLAGS", flags(train_examples=0, dev_examples=0))
    assert CASES["SQuAD"].copy_data(source, tmp_path) == {"train": 1, "dev": 1}
    (row,) = finetuning_data.read_rows({"task": "squad1.1", "data_dir": str(tmp_path)}, "dev")
    assert (row["question"], row["start"], row["answers"]) == ("Who?", 0, ["The cats"])
    assert finetuning_data.f1({"q": "cats."}, [row]) == 100
    assert finetuning_data.f1({"q": "cats sat"}, [row]) == pytest.approx(200 / 3)
    assert finetuning_data.f1({"q": "dogs"}, [row]) == 0
