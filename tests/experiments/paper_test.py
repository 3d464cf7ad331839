"""The paper's tables: their commands, a toy table that is interrupted, and what a report says."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from albert_tf.checkpoints import native
from albert_tf.models import AlbertPretrainer
from albert_tf.pretrained.presets import get_preset
from data_pipeline.command_line import flags
from data_pipeline.command_line.program import parse_flags
from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.paper import speed
from experiments.paper.cells import Lab, Run, script, with_parents
from experiments.paper.report import draw, rows_of, table_rows
from experiments.paper.rows import pairs_of, plan
from experiments.paper.tables import LOSS, TABLES
from experiments.tables import read_rows
from experiments.weights.intervals import t_interval
from tests.conformance_cases import SMALLEST
from tests.conftest import flags_of_its_own

VOCABULARY = Path(__file__).parents[1] / "goldens" / "wordpiece" / "vocab.txt"
WORDS = "the cat sat on a mat while every dog ran off quickly to see what was in there"


@pytest.fixture(name="texts")
def fixture_texts(tmp_path):
    """Flags of a corpus of 40 documents, and of others."""
    for name in ("train", "heldout", "more"):
        sentences = [
            " ".join(WORDS.split()[(i * j) % 17] for j in range(1, 9)) + "."
            for i in range(len(name), 200)
        ]
        documents = ["\n".join(sentences[i : i + 5]) for i in range(0, len(sentences), 5)]
        (tmp_path / f"{name}.txt").write_text("\n\n".join(documents) + "\n")
    names = {"corpus": "train", "heldout": "heldout", "more_corpus": "more", "more_heldout": "more"}
    return {flag: str(tmp_path / f"{name}.txt") for flag, name in names.items()}


@pytest.mark.parametrize("shape", ["small", "paper"])
@pytest.mark.parametrize("name", TABLES)
def test_commands_are_of_the_programs(name, shape, texts, tmp_path):
    """Every command of every row parses with the program's own parser."""
    lab = Lab(**texts, shape=shape, tasks=("squad2.0", "sst-2"), data_dir="data")
    lab = dataclasses.replace(lab, output_dir=str(tmp_path))
    cells = getattr(TABLES[name], shape)
    runs = [Run(lab, name, cell, seed=1) for cell in cells]
    assert len({run.key for run in runs}) == len(cells)
    for run in runs:
        for _, (module, *arguments) in run.commands():
            with flags_of_its_own():
                flags.group("")
                importlib.import_module(module).define_flags()
                parse_flags([module, *arguments])
    lines = list(script(runs))
    assert sum("albert_tf.run_pretraining" in line for line in lines) == len(cells)
    assert sum("create_pretraining_data" in line for line in lines) == len(
        {data for run in runs for data in run.data}
    )
    assert f"{len(cells)} of {len(cells)} runs are left" in plan(runs, [])


def test_a_script_begins_where_its_runs_begin():
    """It has each command once, and needs no text on the machine that prints it."""
    lab = Lab(corpus="not/here", heldout="nor/there", shape="paper")
    cells = [cell for cell in TABLES["depth"].paper if cell.name in ("6 layers", "12 layers")]
    lines = list(script(with_parents([Run(lab, "depth", cell, 0) for cell in cells])))
    text = "\n".join(lines)
    assert re.findall(r"^# depth, (\d+) layer", text, re.MULTILINE) == ["1", "3", "6", "12"]
    assert "# depth, 12 layers, seed 0; in the paper: 81.5, beside 6 layers\n" in text
    assert len(set(lines)) == len(lines)


def test_what_the_paper_lacks_is_not_printed(result_of):
    result = result_of("experiments.paper", "--table=optimizer", "--shape=paper")
    assert result.returncode == 2 and "--table=optimizer is none of the paper's" in result.stderr


def test_tasks_are_checked_before_anything_runs():
    with pytest.raises(UserError, match="--task=sst is unknown"):
        Lab(tasks=("sst",), data_dir="glue")
    with pytest.raises(UserError, match="--tasks needs --data_dir"):
        Lab(tasks=("sst-2",))


def test_rows_are_compared_with_rows():
    for table in TABLES.values():
        for cells in (table.small, table.paper):
            names = {"", *(cell.name for cell in cells)}
            assert len(names) == len(cells) + 1
            for cell in cells:
                assert {cell.against, cell.start} <= names
                assert len(cell.paper) <= len(table.figures)
    # A row of several tables is one run.
    lab = Lab(corpus=__file__, heldout=__file__)
    shared = {"sharing": "all", "depth": "4 layers", "width": "H = 128", "dropout": "without"}
    keys = {
        Run(lab, name, cell, 0).key
        for name, wanted in shared.items()
        for cell in TABLES[name].small
        if cell.name == wanted
    }
    assert len(keys) == 1


def test_updates_that_take_longer_are_fewer():
    base, *_, muon = TABLES["optimizer"].small
    lab = Lab(corpus=__file__, heldout=__file__, tokens=10e6)
    steps = [Run(lab, "optimizer", cell, 0).flags["num_train_steps"] for cell in (base, muon)]
    assert steps == [2441, 2380]  # 2441.4 / 1.026 = 2379.5
    rows = [
        {**row(cell, 0, 5.0, number), "table": "optimizer"}
        for cell, number in [(base.name, 2441), (muon.name, 476), (muon.name, 2380)]
    ]
    assert rows_of("optimizer", rows) == [rows[0], rows[2]]


def row(cell: str, seed: int, loss: float, steps: int = 10) -> dict[str, str]:
    """A row of `sharing`."""
    texts = "train:a:sop heldout:b:sop"
    settings = f"texts={texts}; vocabulary=made; max_seq_length=128; num_train_steps={steps}"
    names = {"table": "sharing", "cell": cell, "seed": str(seed), "settings": settings}
    return {**names, "figures": f"{LOSS}={loss}"}


def test_a_report_pairs_seeds_and_says_no_more_than_it_knows(tmp_path):
    losses = {
        "all": (5.0, 5.2, 5.1),
        "attention shared": (4.9, 5.09, 5.01),  # Surely better, as in the paper.
        "feed-forward shared": (5.1, 5.32, 5.19),  # Surely worse, which the paper's 80.2 is not.
        "nothing": (4.9, 5.3, 5.0),
        "groups of two layers": (4.0,),
    }
    rows = [row(cell, seed, loss) for cell, of in losses.items() for seed, loss in enumerate(of)]
    other = {**rows[0], "figures": f"{LOSS}=9", "settings": rows[0]["settings"] + "0"}
    trial = {**rows[0], "settings": rows[0]["settings"] + "; max_minutes=1"}
    found = {
        line["row"]: line
        for line in table_rows(TABLES["sharing"], rows_of("sharing", [other, trial, *rows]))
    }
    assert {name: line["same direction?"] for name, line in found.items()} == {
        "all": "",
        "attention shared": "yes",
        "feed-forward shared": "no, worse",
        "nothing": "no difference seen",
        "groups of two layers": "one seed",
    }
    assert found["all"]["ours (runs)"] == "5.100 (3)"
    assert found["attention shared"]["paper (average score)"] == "81.7"
    assert found["attention shared"]["difference"] == "-0.100"
    # -0.1, -0.11, -0.09: 4.303 times 0.01 / sqrt(3).
    assert found["attention shared"]["95 % interval"] == "-0.125 to -0.075"
    tuned = [{**each, "figures": "sst-2.dev=0.8"} for each in rows[:2]]
    assert [line["measured"] for line in table_rows(TABLES["sharing"], tuned)] == ["sst-2.dev"]
    assert t_interval([1.0, 1.0]) == (1.0, 1.0)
    draw(TABLES["sharing"], rows, tmp_path / "sharing.png")
    assert (tmp_path / "sharing.png").stat().st_size > 1000


def test_speed_adds_layers_where_a_model_is_too_large(tmp_path):
    """The layers of BERT large are 23 times the difference of two and one; the optimizer of a
    shared model knows one layer only.
    """
    for preset in speed.MODELS:
        config = get_preset(preset)
        for layers in (1, 2, config.num_hidden_layers):
            own = 1 if config.parameter_sharing == "all" else layers
            seconds = {"arithmetic": 1.0 + layers, "optimizer": 0.5 + own}
            (tmp_path / f"{preset}_{layers}_float32.json").write_text(json.dumps(seconds))
    lines = {line["model"].split()[0]: line for line in speed.table_rows(tmp_path, "float32")}
    large = {name for name, line in lines.items() if "times their number" in line["model"]}
    assert large == {"bert-large", "bert-xlarge", "albert-xlarge-v1", "albert-xxlarge-v1"}
    assert lines["bert-large"]["processor seconds"] == "25.00 + 24.500"
    assert lines["albert-xxlarge-v1"]["processor seconds"] == "13.00 + 1.500"
    assert lines["albert-base-v1"]["arithmetic"] == f"{25 / 13:.2f}x"
    assert lines["albert-xlarge-v1"]["operations"] == "0.26x"


@pytest.mark.table
def test_a_table_goes_on_where_it_was_interrupted(texts, tmp_path):
    rows = tmp_path / "runs.csv"
    command = [
        *(sys.executable, "-m", "experiments.paper", "--table=dropout", "--seeds=1"),
        *(f"--{name}={path}" for name, path in texts.items() if "more" not in name),
        *(f"--vocab_file={VOCABULARY}", "--max_seq_length=16", "--tokens=5e3"),
        *(f"--output_dir={tmp_path / 'work'}", f"--rows={rows}"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    while not read_rows(rows):
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)  # The program that it runs, too.
    process.wait()
    first = read_rows(rows)
    assert [each["cell"] for each in first] == ["dropout 0.1"]
    second = subprocess.run(command, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    assert "1 of 2 runs are left" in second.stdout and "[1/1] dropout, without" in second.stdout
    assert read_rows(rows)[:1] == first and len(read_rows(rows)) == 2
    assert float(dict(p.split("=") for p in first[0]["figures"].split("; "))[LOSS]) > 0
    written = rows.read_text()
    third = subprocess.run(command, capture_output=True, text=True)
    assert "0 of 2 runs are left" in third.stdout and "| without |" in third.stdout
    assert re.search(r"^2 runs, 0\.\d hours$", third.stdout, re.MULTILINE)
    assert (tmp_path / "work" / "dropout.png").stat().st_size > 1000
    assert rows.read_text() == written


@pytest.mark.table
@pytest.mark.parametrize(
    ("table", "cell", "length", "figure"),
    [
        ("data", "both", "--tokens=5e3", "more_masked_lm_loss"),
        ("equal_time", "BERT, H = 256", "--minutes=0.02", LOSS),  # Instead of 2 million updates.
        ("embedding", "E = 16", "--tokens=5e3", LOSS),
    ],
)
def test_a_cell_is_trained_and_measured(
    table, cell, length, figure, texts, tmp_path, result_of, quick_python, monkeypatch
):
    def run(*program, log):
        subprocess.run([quick_python, "-m", *program], check=True)

    monkeypatch.setattr("experiments.paper.cells.run_program", run)
    rows = tmp_path / "runs.csv"
    result = result_of(
        "experiments.paper",
        *(f"--table={table}", f"--cell=^{cell}", "--seeds=1", length),
        *(f"--{name}={path}" for name, path in texts.items()),
        *(f"--vocab_file={VOCABULARY}", "--max_seq_length=16"),
        *(f"--output_dir={tmp_path / 'work'}", f"--rows={rows}"),
    )
    assert result.returncode == 0, result.stderr
    (made,) = read_rows(rows)
    assert (made["table"], made["cell"]) == (table, cell)
    figures = pairs_of(made["figures"])
    assert 1 < float(figures[figure]) < 9
    assert ("more_masked_lm_accuracy" in figures) == (table == "data")
    assert f"| {cell} | {figure} |" in result.stdout


def test_a_model_is_measured_on_all_sentence_objectives(texts, tmp_path, run_program, monkeypatch):
    """By its own head where it was trained, by a new one elsewhere; `none` has no pairs."""
    tokenizer = load_tokenizer(str(VOCABULARY))
    folders = {}
    for objective in ("none", "nsp", "sop"):
        folders[objective] = str(tmp_path / objective)
        settings = PretrainingSettings(max_seq_length=24, sentence_objective=objective)
        create_pretraining_data(Corpus(texts["corpus"]), folders[objective], tokenizer, settings)
    model = AlbertPretrainer(SMALLEST.replace(vocab_size=tokenizer.vocab_size))
    model.sentence_order.logits.bias.assign([9.0, -9.0])  # All answers are "in order".
    native.save(model, str(tmp_path / "model"), {"max_seq_length": 24}, str(VOCABULARY), {})
    output = tmp_path / "measured.json"
    # Another test has imported it, and a program that runs should not be there already.
    monkeypatch.delitem(sys.modules, "experiments.paper.measure", raising=False)
    with pytest.raises(SystemExit):
        run_program(
            "experiments.paper.measure",
            f"--model={tmp_path / 'model'}",
            "--objective=sop",
            f"--train_data={folders['nsp']},{folders['sop']}",
            f"--eval_data={','.join(folders.values())}",
            "--num_pairs=128",
            f"--output={output}",
        )
    found = json.loads(output.read_text())
    names = {f"{o}_masked_lm_{f}" for o in folders for f in ("loss", "accuracy")}
    assert set(found) == {*names, "nsp_accuracy", "sop_accuracy"}
    batches = pretraining_dataset(folders["sop"], 64, training=False)
    labels = [x["sentence_order_labels"][x["example_weights"] > 0] for x in batches]
    assert found["sop_accuracy"] == pytest.approx(1 - np.concatenate(labels).mean(), abs=1e-6)
    assert 0.4 < found["nsp_accuracy"] <= 1
