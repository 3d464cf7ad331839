"""A fine-tuning run that is started again with another seed if it has learned nothing.

Large models sometimes end up giving one answer to all examples. Such a run is put aside, with all
its files, and the next attempt takes its place:

    runs/rte               the run that counts, for --mode=predict and everything else
    runs/rte.attempt-1     the first run, which gave every example the same answer
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.results import RESULTS_FILE, Result, read_results
from albert_tf.training import run_folder, starts
from albert_tf.training.hooks.bad_steps import Diverged
from albert_tf.training.strategy import is_chief, wait_for_all
from data_pipeline.files import storage

# Distance of the seeds of two attempts: the maximum of --seeds, so other runs' seeds stay unused.
_SEED_STRIDE = 1000
_SEED_LIMIT = 2**31
# Flags that cannot change a run's results. Data is compared by the hash of its content, not path.
_WITHOUT_EFFECT = {
    *("data_dir", "train_file", "dev_file"),
    *("output_dir", "overwrite", "allow_changes", "max_failures", "seeds", "search", "retries"),
    *("mode", "splits", "predict_file", "eval_batch_size", "recompute", "jit_compile"),
    *("checkpoint_steps", "keep_checkpoints", "steps_per_loop"),
    *("distribution", "tpu", "fast", "packed", "deterministic"),
}


def run_until_good(
    run: Callable[[int], list[Result]],
    folder: str,
    seed: int,
    retries: int,
    strategy: tf.distribute.Strategy,
) -> list[Result]:
    """The results of a run that has learned something, or of the last attempt.

    Args:
      run: seed -> results of a run in `folder`, which it starts, continues, or finds finished.
      retries: attempts after the first.

    Raises:
      Diverged: the last attempt diverged.
    """
    wait_for_all(strategy)  # No worker may count folders while another one moves them.
    # The runs put aside tell which attempt is in the folder: resuming after an interruption needs
    # no other stored state.
    attempt = max(put_aside(folder), default=0)
    wait_for_all(strategy)
    while True:
        is_last = attempt >= retries
        try:
            results = run(attempt_seed(seed, attempt))
            reason = nothing_learned(results)
        except Diverged as error:
            if is_last:
                raise
            reason = str(error)
        if reason is None:
            return results
        if is_chief(strategy):
            print(_warning(folder, reason, is_last), flush=True)
        if is_last:
            return results  # A run without a good score is still a result.
        attempt += 1
        aside = f"{folder.rstrip('/')}.attempt-{attempt}"
        wait_for_all(strategy)
        if is_chief(strategy):
            tf.io.gfile.rename(folder.rstrip("/"), aside)
            print(
                f"Put aside: {aside}. Attempt {attempt + 1} of at most {retries + 1}, with --seed="
                f"{attempt_seed(seed, attempt)}.",
                flush=True,
            )
        wait_for_all(strategy)


def attempt_seed(seed: int, attempt: int) -> int:
    """The seed of an attempt, counted from 0: 3, 1003, 2003, ..., within int32."""
    return (seed + attempt * _SEED_STRIDE) % _SEED_LIMIT


def put_aside(folder: str) -> list[int]:
    """The numbers of the runs that were put aside for the one in a folder."""
    parent, name = os.path.split(folder.rstrip("/"))
    pattern = re.compile(rf"{re.escape(name)}\.attempt-(\d+)")
    matches = map(pattern.fullmatch, storage.names_in(parent or "."))
    return sorted(int(match[1]) for match in matches if match)


def is_put_aside(folder: str) -> bool:
    """Whether a folder has the name of one: runs/rte.attempt-1."""
    return re.search(r"\.attempt-\d+/?$", folder) is not None


def nothing_learned(results: list[Result]) -> str | None:
    """A sentence on why a run counts as having learned nothing; None: it has learned something.

    It has learned nothing if its best model, on the split that decides which checkpoint is best,
    gives all examples one answer, or answers that are not numbers, or has no score.
    """
    result = results[0]
    if result.notes:
        return " ".join(result.notes)
    if result.best.metrics[result.key] is None:
        return f"{result.key} is undefined."
    return None


def _warning(folder: str, reason: str, is_last: bool) -> str:
    """The warning that a run has learned nothing: the reason, and what to do."""
    remedy = (
        "Small models may need a higher rate (--learning_rate=1e-4 to 3e-4) or more updates; large "
        "ones need a lower rate (--learning_rate=5e-6 to 1e-5), --bias_correction and no dropout "
        "in the encoder (--hidden_dropout=0 --attention_dropout=0), as in configs/stable_*.flags. "
        "More updates, with a tenth of them as warm-up (--num_warmup_steps), also help."
    )
    again = " --retries=3 restarts such a run with other seeds." if is_last else ""
    return f"\nWARNING: {folder} HAS LEARNED NOTHING. {reason}\n{remedy}{again}\n"


def finished_results(
    folder: str, flags: Mapping[str, Any], data: Callable[[], Mapping[str, str]]
) -> list[Result] | None:
    """The results of a finished run; None: there is no run, or it is not finished. UserError if it
    was made with other flags or examples.

    Args:
      flags: those of this command.
      data: returns the hashes of this command's examples; called only if there is a finished run.
    """
    results = os.path.join(folder, RESULTS_FILE)
    started = os.path.join(folder, starts.FLAGS_FILE)
    if not tf.io.gfile.exists(results) or not tf.io.gfile.exists(started):
        return None
    # A run writes its flags first and results last: older results are from an earlier start.
    if tf.io.gfile.stat(results).mtime_nsec < tf.io.gfile.stat(started).mtime_nsec:
        return None
    now, then = starts.as_json(flags), starts.read_run_json(started, "Delete the folder of the run")
    changes = [
        f"--{name} was {then[name]!r} and is {value!r}"
        for name, value in now.items()
        # A flag that an earlier version did not have does not count as a change.
        if name in then and name not in _WITHOUT_EFFECT and then[name] != value
    ]
    finished = read_results(folder)
    hashes = {name: digest for each in finished for name, digest in each.data_sha256.items()}
    changes += [
        f"the examples of {split!r} have changed"
        for split, digest in data().items()
        if hashes.get(split, digest) != digest
    ]
    if changes:
        raise UserError(
            f"{folder} holds a finished run with other flags or examples: {'; '.join(changes)}. "
            "Use the same ones, another --output_dir, or --overwrite to repeat all runs."
        )
    return finished


def delete(folder: str, strategy: tf.distribute.Strategy) -> None:
    """Deletes the run in a folder, if there is one, and those that were put aside for it;
    UserError if another process trains there.
    """
    wait_for_all(strategy)
    if is_chief(strategy):
        for number in put_aside(folder):
            tf.io.gfile.rmtree(f"{folder.rstrip('/')}.attempt-{number}")
        run_folder.delete(folder)
    wait_for_all(strategy)
