"""Runs that learn nothing are put aside and started again; finished ones are recognized."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.attempts import (
    delete,
    finished_results,
    nothing_learned,
    put_aside,
    run_until_good,
)
from albert_tf.finetuning.runs.results import Result, Scored, write_results
from albert_tf.training.hooks.bad_steps import Diverged

FLAT = ("Every prediction is 1, which is right for 50.0%.",)


def result(score: float | None = 0.5, notes: tuple[str, ...] = ()) -> list[Result]:
    scored = Scored(4, {"accuracy": score})
    return [Result("rte", "dev", 8, "accuracy", "dev", scored, scored, 0, None, {}, None, notes)]


@pytest.fixture
def strategy() -> tf.distribute.Strategy:
    return tf.distribute.get_strategy()


@pytest.fixture
def folder(tmp_path) -> str:
    return str(tmp_path / "rte")


def runs(folder: str, *found: list[Result]):
    """seed -> the next of `found`; the seed is written into the folder."""
    left = list(found)

    def run(seed: int) -> list[Result]:
        os.makedirs(folder, exist_ok=True)
        (Path(folder) / "seed").write_text(str(seed))
        return left.pop(0)

    return run


def seeds_in(tmp_path: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in tmp_path.rglob("seed")}


def test_a_good_run_stays_alone(tmp_path, folder, strategy, capsys):
    assert run_until_good(runs(folder, result(0.9)), folder, 3, 5, strategy) == result(0.9)
    assert seeds_in(tmp_path) == {"rte": "3"} and not capsys.readouterr().out


def test_a_flat_run_is_put_aside_and_nothing_is_lost(tmp_path, folder, strategy, capsys):
    run = runs(folder, result(notes=FLAT), result(None), result(0.9))
    assert run_until_good(run, f"{folder}/", 3, 5, strategy) == result(0.9)
    assert seeds_in(tmp_path) == {"rte": "2003", "rte.attempt-1": "3", "rte.attempt-2": "1003"}
    assert put_aside(folder) == [1, 2]
    shown = capsys.readouterr().out
    assert "HAS LEARNED NOTHING. Every prediction is 1" in shown and "--learning_rate" in shown
    assert "accuracy is undefined" in shown and "Attempt 3 of at most 6, with --seed=2003" in shown
    assert "--retries=3" not in shown


def test_the_last_attempt_stays_where_it_is(tmp_path, folder, strategy, capsys):
    run = runs(folder, result(notes=FLAT), result(0.4, FLAT))
    assert run_until_good(run, folder, 3, 1, strategy) == result(0.4, FLAT)
    assert seeds_in(tmp_path) == {"rte": "1003", "rte.attempt-1": "3"}
    assert "--retries=3 restarts such a run" in capsys.readouterr().out


def test_a_killed_command_goes_on_with_its_attempt(tmp_path, folder, strategy):
    """Even if it allows fewer attempts than there were."""
    os.makedirs(f"{folder}.attempt-1")
    os.makedirs(f"{folder}.attempt-2")
    os.makedirs(f"{folder}-other.attempt-7")
    run_until_good(runs(folder, result()), folder, 3, 0, strategy)
    assert seeds_in(tmp_path) == {"rte": "2003"}


def test_names_of_folders_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.makedirs("a.b.attempt-10")
    os.makedirs("aXb.attempt-11")
    assert put_aside("a.b") == [10] and put_aside("none/a.b") == []


def test_what_counts_as_nothing():
    assert nothing_learned(result(0.0)) is None
    assert nothing_learned(result(0.5, FLAT)) == FLAT[0]
    assert nothing_learned(result(None)) == "accuracy is undefined."


@pytest.fixture
def finished(tmp_path) -> str:
    """A folder with a finished run of --learning_rate=0.1."""
    (tmp_path / "flags.json").write_text(json.dumps({"learning_rate": 0.1, "retries": 2}))
    write_results(str(tmp_path), result(0.9))
    return str(tmp_path)


def test_a_finished_run_is_recognized(finished):
    flags = {"learning_rate": 0.1, "retries": 7, "new_flag": 1}
    assert finished_results(finished, flags, dict) == result(0.9)


def test_a_run_that_began_again_is_not_finished(finished):
    flags = Path(finished) / "flags.json"
    later = (
        Path(finished) / "results.json"
    ).stat().st_mtime_ns + 2 * 10**9  # TensorFlow tells seconds apart.
    os.utime(flags, ns=(later, later))
    assert finished_results(finished, {"learning_rate": 0.2}, dict) is None


def test_without_results_or_flags_nothing_is_finished(finished, tmp_path):
    assert finished_results(str(tmp_path / "none"), {}, dict) is None
    (Path(finished) / "flags.json").unlink()
    assert finished_results(finished, {}, dict) is None


def test_a_finished_run_with_other_settings_is_no_result(finished):
    with pytest.raises(UserError, match=r"--learning_rate was 0\.1 and is 0\.2.*--overwrite"):
        finished_results(finished, {"learning_rate": 0.2, "retries": 2}, dict)


def test_a_finished_run_on_other_examples_is_no_result(finished):
    """Hashes that a run does not have, of its records for example, are not compared."""
    (made,) = result(0.9)
    made = dataclasses.replace(made, data_sha256={"train": "0" * 64, "dev": "1" * 64})
    write_results(finished, [made])
    same = {**made.data_sha256, "extra": "2" * 64}
    assert finished_results(finished, {"learning_rate": 0.1}, lambda: same) == [made]
    other = {**same, "dev": "3" * 64}
    with pytest.raises(UserError, match="the examples of 'dev' have changed.*--overwrite"):
        finished_results(finished, {"learning_rate": 0.1}, lambda: other)


def test_deleting(tmp_path, folder, strategy):
    os.makedirs(f"{folder}.attempt-1")
    os.makedirs(folder)
    (Path(folder) / "notes.txt").write_text("mine")
    delete(folder, strategy)
    assert not put_aside(folder) and (Path(folder) / "notes.txt").exists()  # It holds no run.
    (Path(folder) / "run.json").write_text("{}")
    delete(folder, strategy)
    assert not os.listdir(folder)


def test_a_run_that_diverges_is_started_again(tmp_path, folder, strategy, capsys):
    seeds = []

    def run(seed: int) -> list[Result]:
        os.makedirs(folder, exist_ok=True)
        seeds.append(seed)
        if len(seeds) != 2:
            raise Diverged("loss is not finite at step 3")
        return result(0.9)

    assert run_until_good(run, folder, 3, 1, strategy) == result(0.9) and seeds == [3, 1003]
    assert "HAS LEARNED NOTHING. loss is not finite" in capsys.readouterr().out
    with pytest.raises(Diverged):
        run_until_good(run, folder, 3, 1, strategy)
