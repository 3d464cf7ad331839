"""Trains with a compiled update under JAX, on a machine without TensorFlow.

    python -m experiments.weights.accelerator --compiled=compiled --tokens='work/tokens/*.xz' \
        --output_dir=run --max_minutes=9

run/state.npz       weights, moments and the place in the data; the same command resumes from it
run/weights.npz     only the weights, as float16, for collect.py
run/log.csv         figures by update
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import glob
import io
import itertools
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.tables import append_row
from experiments.weights import tokens

FLAGS = flags.FLAGS
Batch = dict[str, np.ndarray]
State = list[np.ndarray]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Training")
    flags.DEFINE_string("compiled", None, "Folder of compile_update.", required=True)
    flags.DEFINE_string("tokens", None, "Glob of the token files of prepare.", required=True)
    flags.DEFINE_string("output_dir", None, "Folder of the run.", required=True)
    flags.DEFINE_string("weights", None, "The weights.npz of another run, to start from.")
    flags.DEFINE_float("max_minutes", 0, "Minutes after which it saves and ends; 0: none.", 0)
    flags.DEFINE_float("save_minutes", 2, "Minutes between two saves.", above=0)
    flags.DEFINE_integer("report_steps", 100, "Updates between two lines of the log.", 1)
    flags.DEFINE_integer("processes", 0, "Processes that draw batches; 0: cores - 1.", 0)


class Place(NamedTuple):
    """A place in the data: the file and the pass over it, and its next batch."""

    unit: int = 0
    batch: int = 0


Drawn: TypeAlias = Iterator[tuple[Batch, Place]]


def main() -> None:
    began = time.monotonic()
    compiled, output = Path(FLAGS.compiled), Path(FLAGS.output_dir)
    about = json.loads((compiled / "update.json").read_text())
    files = sorted(glob.glob(FLAGS.tokens))
    if not files:
        raise UserError(f"--tokens={FLAGS.tokens} matches no file. Make them with prepare.")
    output.mkdir(parents=True, exist_ok=True)
    state, step, place = load(output, about, files)
    update = compiled_update(compiled, about, state)
    print(
        f"{time.monotonic() - began:.0f} s: update {step} of {about['num_train_steps']}", flush=True
    )
    saved = reported = time.monotonic()
    reported_step, last = step, about["num_train_steps"]
    processes = FLAGS.processes or max(1, (os.cpu_count() or 2) - 1)
    with drawn(files, compiled, place, processes) as data:
        while step < last:
            batch, place = next(data)
            figures, state = update(batch, state)
            step, now = step + 1, time.monotonic()
            is_last = FLAGS.max_minutes and now - began > 60 * FLAGS.max_minutes
            reports = step % FLAGS.report_steps == 0
            saves = is_last or step == last or now - saved > 60 * FLAGS.save_minutes
            if reports or saves:
                figures = np.array(figures)  # Blocks until the device has finished.
                if not np.isfinite(figures).all():
                    raise UserError(f"Update {step} is not finite; the last save is in {output}.")
            if reports:
                rate = (step - reported_step) / (time.monotonic() - reported)
                reported, reported_step = time.monotonic(), step
                report(output, about, step, figures, rate)
            if saves:
                save(output, about, state, [step, len(files), *place])
                saved = time.monotonic()
            if is_last:
                break
    print(f"{time.monotonic() - began:.0f} s: update {step}, {output}", flush=True)


def load(output: Path, about: dict[str, Any], files: Sequence[str]) -> tuple[State, int, Place]:
    """State, number of updates and place of the run; the initial ones if it has not started."""
    path = output / "state.npz"
    if path.exists():
        *state, counts = arrays_of(path)
        step, number_of_files, *place = counts.tolist()
        if number_of_files != len(files):
            raise UserError(
                f"--tokens={FLAGS.tokens} matches {len(files)} files, but {output} began with "
                f"{number_of_files}, so its place in them is unknown. Give the same files."
            )
        return state, step, Place(*place)
    state = arrays_of(Path(FLAGS.compiled) / "state.npz")
    if FLAGS.weights:
        with np.load(FLAGS.weights) as file:
            others = {name: file[name] for name in file.files}
        named = {name: array for name, array in zip(about["starts"], state) if name is not None}
        if {n: each.shape for n, each in others.items()} != {n: a.shape for n, a in named.items()}:
            raise UserError(
                f"--weights={FLAGS.weights} holds other weights than {FLAGS.compiled} trains. Use "
                "those of a run of the same architecture."
            )
        state = [
            array if name is None else others[name].astype(array.dtype)
            for array, name in zip(state, about["starts"])
        ]
    return state, 0, Place()


def arrays_of(path: Path) -> State:
    """The arrays in a NumPy file, in order."""
    with np.load(path) as file:
        return [file[f"arr_{number}"] for number in range(len(file.files))]


def save(output: Path, about: dict[str, Any], state: Sequence[Any], counts: list[int]) -> None:
    """Writes the state, with everything that `load` reads, and the weights by name as float16."""
    arrays = [np.asarray(each) for each in state]
    named = zip(about["weights"], arrays)
    weights = {name: array.astype(np.float16) for name, array in named if name is not None}
    _write(output / "weights.npz", **weights)
    _write(output / "state.npz", *arrays, np.array(counts))
    print(f"saved update {counts[0]}", flush=True)


def _write(path: Path, *arrays: np.ndarray, **named: np.ndarray) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, *arrays, **named)
    atomic_files.write_bytes(str(path), buffer.getvalue())


def report(output: Path, about: dict[str, Any], step: int, figures: np.ndarray, rate: float):
    """Writes a line to the screen and to log.csv; `rate` is in updates per second."""
    size = about["batch_size"] * about["examples"]["max_seq_length"]
    row = {"step": step} | {name: f"{value:.4f}" for name, value in zip(about["figures"], figures)}
    row["tokens_per_second"] = f"{rate * size:.0f}"
    append_row(output / "log.csv", row)
    print(*itertools.chain(*row.items()), flush=True)


def compiled_update(
    folder: Path, about: dict[str, Any], state: State
) -> Callable[[Batch, Sequence[Any]], tuple[Any, list[Any]]]:
    """(batch, state) -> (figures, new state); the buffers of the old state are donated."""
    import jax
    import jax.export

    jax.config.update("jax_enable_x64", True)  # The update counter is an int64.
    inputs = dict(sorted(about["inputs"].items()))
    shapes = [jax.ShapeDtypeStruct(*each) for each in inputs.values()]
    shapes += [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in state]
    replaced = about["replaced"]
    results = [jax.ShapeDtypeStruct((len(about["figures"]),), np.float32)]
    results += [jax.ShapeDtypeStruct(state[i].shape, state[i].dtype) for i in replaced]
    # JAX only calls modules that it exported itself: export a dummy, then replace its content.
    frame = jax.export.export(
        jax.jit(lambda *_: [jax.numpy.zeros(r.shape, r.dtype) for r in results], keep_unused=True)
    )(*shapes)
    module = (folder / "update.stablehlo").read_bytes()
    call = dataclasses.replace(frame, mlir_module_serialized=module).call

    def updated(batch: Batch, state: Sequence[Any]) -> tuple[Any, list[Any]]:
        # Batches arrive in small dtypes, and are cast to those of the model on the device.
        arrays = [batch[name].astype(dtype) for name, (_, dtype) in inputs.items()]
        figures, *new = call(*arrays, *state)
        values = dict(zip(replaced, new))
        return figures, [values.get(number, old) for number, old in enumerate(state)]

    return jax.jit(updated, donate_argnums=1)


@contextlib.contextmanager
def drawn(files: Sequence[str], compiled: Path, place: Place, processes: int) -> Iterator[Drawn]:
    """A context whose value is an endless iterator over batches, each with the place after it.
    Other processes prefetch them.
    """
    context = multiprocessing.get_context("spawn")  # Not fork, because JAX has threads.
    pool = concurrent.futures.ProcessPoolExecutor(processes, context)

    def batches() -> Drawn:
        units = itertools.count(place.unit)
        waiting: collections.deque = collections.deque()
        empty = 0
        for unit in itertools.count(place.unit):
            while len(waiting) <= processes:
                waiting.append(pool.submit(draw, files, str(compiled), next(units)))
            found = waiting.popleft().result()
            for number in range(place.batch if unit == place.unit else 0, len(found)):
                is_last = number + 1 == len(found)
                yield found[number], Place(unit + 1) if is_last else Place(unit, number + 1)
            empty = 0 if found else empty + 1
            if empty > len(files):
                raise UserError("The files of tokens do not fill a batch. Make larger ones.")

    try:
        yield batches()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def draw(files: Sequence[str], compiled: str, unit: int) -> list[Batch]:
    """The batches of one file in a pass over all files; each pass has another order of files."""
    about = json.loads(Path(compiled, "update.json").read_text())
    tokenizer = load_tokenizer(str(Path(compiled, about["vocab_file"])))
    settings = PretrainingSettings(**about["examples"])
    epoch, place = divmod(unit, len(files))
    order = np.random.default_rng((about["seed"], epoch)).permutation(len(files))
    part = tokens.unpacked(Path(files[order[place]]).read_bytes(), tokenizer)
    seed = (about["seed"], epoch, int(order[place]))
    return [
        {name: value.astype(_smallest(value)) for name, value in batch.items()}
        for batch in tokens.batches(part, settings, tokenizer, about["batch_size"], seed)
    ]


def _smallest(values: np.ndarray) -> type:
    """The dtype in which processes pass arrays: uint16 for ids and positions; bool stays."""
    return np.bool_ if values.dtype == bool else np.uint16


if __name__ == "__main__":
    define_flags()
    run_binary(main)
