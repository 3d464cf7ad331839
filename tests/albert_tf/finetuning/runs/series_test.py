"""Series of runs: which are made, what is said of their scores, where the best one is."""

import dataclasses
import json
import os
from collections.abc import Mapping

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.finetuning.runs import series
from albert_tf.finetuning.runs.results import Result, Scored
from albert_tf.finetuning.runs.series import Variant, run_series, summarize, variants
from albert_tf.training.hooks.bad_steps import Diverged


def result(score: float | None, seed: int, data: str = "a", notes: tuple[str, ...] = ()) -> Result:
    scored = Scored(4, {"accuracy": score})
    data_sha256 = {"train": data * 64}
    return Result(
        "rte", "dev", 8, "accuracy", "dev", scored, scored, seed, None, data_sha256, None, notes
    )


def runs_with(scores: Mapping[str, float | None]):
    """(folder, variant) -> the result with the score of that folder's end; makes the folder."""

    def run(folder: str, variant: Variant) -> list[Result]:
        os.makedirs(folder)
        (score,) = [value for name, value in scores.items() if folder.endswith(name)]
        return [result(score, variant.seed)]

    return run


def test_every_value_with_every_seed():
    assert variants(3, 2, {}) == [Variant({}, 3), Variant({}, 4)]
    assert [variant.folder for variant in variants(3, 2, {})] == ["seed-3", "seed-4"]
    found = variants(0, 2, {"learning_rate": [1e-5, 2e-5], "train_batch_size": [16]})
    assert [variant.folder for variant in found] == [
        "learning_rate=1e-05_train_batch_size=16/seed-0",
        "learning_rate=1e-05_train_batch_size=16/seed-1",
        "learning_rate=2e-05_train_batch_size=16/seed-0",
        "learning_rate=2e-05_train_batch_size=16/seed-1",
    ]


def test_summary():
    scores = [0.5, None, 0.9, 0.7, 0.6]
    found, defined = summarize({}, scores), [0.5, 0.9, 0.7, 0.6]
    assert (found.runs, found.undefined, found.best) == (5, 1, 0.9)
    assert found.median == pytest.approx(0.65) and found.mean == pytest.approx(0.675)
    assert found.deviation == pytest.approx(np.std(defined, ddof=1))
    interval = scipy.stats.t.interval(0.95, 3, np.mean(defined), scipy.stats.sem(defined))
    np.testing.assert_allclose((found.low, found.high), interval)


def test_one_run_has_no_deviation_and_none_has_no_median():
    assert summarize({}, [0.5]) == series.Summary({}, 1, 0, 0.5, 0.5, 0.5, None, None, None)
    assert summarize({}, [None]) == series.Summary({}, 1, 1, None, None, None, None, None, None)


def test_the_table_is_sorted_by_score(tmp_path, capsys):
    planned = variants(0, 2, {"learning_rate": [0.1, 0.2, 0.3]})
    scores = {
        "0.1/seed-0": 0.5, "0.1/seed-1": 0.6, "0.2/seed-0": 0.9, "0.2/seed-1": 0.7,
        "0.3/seed-0": None, "0.3/seed-1": None,
    }  # fmt: skip
    table = run_series(str(tmp_path), planned, runs_with(scores))
    assert series.read_series(str(tmp_path)) == dataclasses.replace(
        table, runs=tuple(table.runs), settings=tuple(table.settings)
    )
    written = json.loads((tmp_path / "seeds.json").read_text())
    assert [point["values"]["learning_rate"] for point in written["settings"]] == [0.2, 0.1, 0.3]
    assert [run["best"] for run in written["runs"]] == [0.9, 0.7, 0.6, 0.5, None, None]
    assert written["best_run"] == "learning_rate=0.2/seed-0" and written["planned"] == 6
    text = (tmp_path / "seeds.md").read_text()
    assert text in capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0].startswith("| learning_rate | runs | median | best | mean | standard dev")
    assert lines[2].startswith("| 0.2 | 2 | 80.0 | 90.0 | 80.0 | 14.1 | -47.1 to 207.1 |")
    assert lines[4] == "| 0.3 | 2 | - | - | - | - | - |"
    assert "| learning_rate=0.2/seed-0 | 90.0 | 90.0 | 4 | 0 | 1 |" in lines
    assert series.best_run(str(tmp_path)) == str(tmp_path / "learning_rate=0.2" / "seed-0")
    assert len(series.run_folders(str(tmp_path))) == 6


def test_a_single_run_stands_for_itself(tmp_path):
    assert series.run_folders(str(tmp_path)) == [str(tmp_path)]


def test_the_table_is_there_after_each_run(tmp_path):
    """And a series that is killed goes on with what is missing."""
    done = []

    def run(folder: str, variant: Variant) -> list[Result]:
        if variant.seed == 2:
            raise KeyboardInterrupt
        done.append(variant.seed)
        return [result(0.5 + variant.seed / 10, variant.seed)]

    with pytest.raises(KeyboardInterrupt):
        run_series(str(tmp_path), variants(0, 3, {}), run)
    table = series.read_series(str(tmp_path))
    assert table and (len(table.runs), table.planned, table.best_run) == (2, 3, "seed-1")
    assert "2 of 3 runs" in (tmp_path / "seeds.md").read_text()


def test_what_was_put_aside_is_counted(tmp_path):
    os.makedirs(tmp_path / "seed-0.attempt-1")
    table = run_series(str(tmp_path), [Variant({}, 0)], runs_with({"seed-0": 0.5}))
    assert table.runs[0].attempts == 2
    assert "do not include them" in (tmp_path / "seeds.md").read_text()


def test_notes_are_shown(tmp_path):
    run_series(str(tmp_path), [Variant({}, 0)], lambda *_: [result(0.5, 0, notes=("All are 1.",))])
    assert "- seed-0: All are 1.\n" in (tmp_path / "seeds.md").read_text()


def test_other_data_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"seed-1 was made from other data than seed-0"):
        run_series(
            str(tmp_path),
            variants(0, 2, {}),
            lambda folder, variant: [result(0.5, variant.seed, "ab"[variant.seed])],
        )


def test_the_folder_of_a_single_run_is_refused(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UserError, match="holds a single run"):
        run_series(str(tmp_path), [Variant({}, 0)], runs_with({"seed-0": 0.5}))


def test_a_table_of_another_version_is_refused(tmp_path):
    (tmp_path / "seeds.json").write_text('{"version": 2}')
    with pytest.raises(UserError, match=r"seeds\.json should be an object of version 1"):
        series.read_series(str(tmp_path))


def test_a_table_of_an_earlier_version_is_read(tmp_path):
    """As this project has written it before: field by field, settings beside their values."""
    names = ("runs", "undefined", "median", "best", "mean", "deviation", "low", "high")
    summary = dict(zip(names, (1, 0, 0.5, 0.5, 0.5, None, None, None)))
    run = {"folder": "x=1/seed-0", "values": {"x": 1}, "seed": 0, "best": 0.5, "last": None}
    run |= {"step": 4, "attempts": 1, "notes": ["All are 1."]}
    table = {"version": 1, "task": "rte", "split": "dev", "key": "accuracy", "planned": 2}
    table |= {
        "runs": [run],
        "settings": [{"values": {"x": 1}, **summary}],
        "best_run": "x=1/seed-0",
    }
    (tmp_path / "seeds.json").write_text(json.dumps(table))
    found = series.read_series(str(tmp_path))
    assert found and found.settings[0].median == 0.5 and found.runs[0].notes == ("All are 1.",)
    (tmp_path / "seeds.json").write_text(json.dumps({**table, "runs": [{**run, "step": None}]}))
    with pytest.raises(UserError, match=r"seeds.json: step should be .* Run the series again"):
        series.read_series(str(tmp_path))


def test_deleting_takes_all_runs_and_nothing_else(tmp_path):
    planned = variants(0, 3, {})
    run_series(str(tmp_path), planned[:2], runs_with({"seed-0": 0.5, "seed-1": 0.6}))
    os.makedirs(tmp_path / "seed-2")  # Begun, and not in the table.
    for number in range(3):
        for name in ("run.json", "results.json"):
            (tmp_path / f"seed-{number}" / name).write_text("{}")
    os.makedirs(tmp_path / "seed-1.attempt-1" / "model")
    (tmp_path / "mine.txt").write_text("kept")
    series.delete_series(str(tmp_path), planned, tf.distribute.get_strategy())
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"mine.txt"} and not (tmp_path / "seed-1.attempt-1").exists()


def test_a_run_that_diverges_is_left_out(tmp_path, capsys):
    def run(folder: str, variant: Variant) -> list[Result]:
        if variant.seed != 1:
            raise Diverged("loss is not finite at step 3")
        return [result(0.5, 1)]

    table = run_series(str(tmp_path), variants(0, 3, {}), run)
    assert [row.folder for row in table.runs] == ["seed-1"] and table.planned == 3
    assert "Left out: seed-2, whose loss is not finite at step 3" in capsys.readouterr().out
    with pytest.raises(UserError, match="every run has diverged. Lower --learning_rate"):
        run_series(str(tmp_path), [Variant({}, 0)], run)
