"""Trains by a compiled update under JAX, on a machine without TensorFlow.

    python -m experiments.weights.accelerator --compiled=compiled --tokens='work/tokens/*.xz' \
        --output_dir=run --max_minutes=9

run/state.npz       weights, moments and the place in the data; the same command goes on from it
run/weights.npz     the weights alone as float16, for collect.py
run/log.csv         figures by update
"""

from __future__ import annotations

import collections
import concurrent.futures
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
from typing import Any, NamedTuple

import numpy as np

from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.weights import tokens

FLAGS = flags.FLAGS
Batch = dict[str, np.ndarray]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Training")
    flags.DEFINE_string("compiled", None, "Folder of compile_update.", required=True)
    flags.DEFINE_string("tokens", None, "Files of tokens of prepare, a glob.", required=True)
    flags.DEFINE_string("output_dir", None, "Folder of the run.", required=True)
    flags.DEFINE_float("max_minutes", 0, "Minutes after which it saves and ends; 0: none.", 0)
    flags.DEFINE_float("save_minutes", 2, "Minutes between two saves.", above=0)
    flags.DEFINE_integer("report_steps", 100, "Updates between two lines of the log.", 1)
    flags.DEFINE_integer("processes", 0, "Processes that draw batches; 0: by the machine.", 0)


class Place(NamedTuple):
    """A place in the data: which pass over which file, and which batch of it comes next."""

    unit: int = 0
    batch: int = 0


def main() -> None:
    began = time.monotonic()
    compiled, output = Path(FLAGS.compiled), Path(FLAGS.output_dir)
    about = json.loads((compiled / "update.json").read_text())
    files = sorted(glob.glob(FLAGS.tokens))
    if not files:
        raise UserError(f"--tokens={FLAGS.tokens} matches no file. Make them with prepare.")
    output.mkdir(parents=True, exist_ok=True)
    state, step, place = load(output, compiled)
    update = compiled_update(compiled, about)
    print(
        f"{time.monotonic() - began:.0f} s: update {step} of {about['num_train_steps']}", flush=True
    )
    saved = reported = time.monotonic()
    last = about["num_train_steps"]
    with Drawn(files, compiled, place, FLAGS.processes or (os.cpu_count() or 2) - 1) as data:
        while step < last:
            batch, place = next(data)
            figures, state = update(batch, state)
            step, now = step + 1, time.monotonic()
            is_last = FLAGS.max_minutes and now - began > 60 * FLAGS.max_minutes
            if step % FLAGS.report_steps == 0:
                figures = np.array(figures)  # Waits for the device.
                rate = FLAGS.report_steps / (time.monotonic() - reported)
                reported = time.monotonic()
                report(output, about, step, figures, rate)
            if is_last or step == last or now - saved > 60 * FLAGS.save_minutes:
                save(output, about, state, step, place)
                saved = time.monotonic()
            if is_last:
                break
    print(f"{time.monotonic() - began:.0f} s: update {step}, {output}", flush=True)


def load(output: Path, compiled: Path) -> tuple[list[np.ndarray], int, Place]:
    """State, number of updates and place of the run, or those before the first update."""
    path = output / "state.npz"
    with np.load(path if path.exists() else compiled / "state.npz") as file:
        arrays = [file[f"arr_{number}"] for number in range(len(file.files))]
    if not path.exists():
        return arrays, 0, Place()
    *state, counts = arrays
    step, *place = counts.tolist()
    return state, step, Place(*place)


def save(
    output: Path, about: dict[str, Any], state: Sequence[Any], step: int, place: Place
) -> None:
    """Writes the state, and the weights as float16."""
    arrays = [np.asarray(each) for each in state]
    weights = [
        array.astype(np.float16)
        for array, name in zip(arrays, about["weights"])
        if name is not None
    ]
    _write(output / "weights.npz", weights)
    _write(output / "state.npz", [*arrays, np.array([step, *place])])
    print(f"saved update {step}", flush=True)


def _write(path: Path, arrays: list[np.ndarray]) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, *arrays)
    atomic_files.write_bytes(str(path), buffer.getvalue())


def report(output: Path, about: dict[str, Any], step: int, figures: np.ndarray, rate: float):
    """A line on the screen and in log.csv; `rate` in updates a second."""
    if not np.isfinite(figures).all():
        raise UserError(f"Update {step} is not finite; the last save is in {output}.")
    names = [*about["figures"], "tokens_per_second"]
    size = about["batch_size"] * about["examples"]["max_seq_length"]
    values = [f"{value:.4f}" for value in figures] + [f"{rate * size:.0f}"]
    path = output / "log.csv"
    with path.open("a", encoding="utf-8") as file:
        if not path.stat().st_size:
            file.write(",".join(["step", *names]) + "\n")
        file.write(",".join([str(step), *values]) + "\n")
    print(step, *itertools.chain(*zip(names, values)), flush=True)


def compiled_update(
    folder: Path, about: dict[str, Any]
) -> Callable[[Batch, Sequence[Any]], tuple[Any, list[Any]]]:
    """(batch, state) -> (figures, new state); the old state is given up."""
    import jax
    import jax.export

    jax.config.update("jax_enable_x64", True)  # The number of the update is an int64.
    inputs = dict(sorted(about["inputs"].items()))
    with np.load(folder / "state.npz") as file:
        state = [file[f"arr_{number}"] for number in range(len(file.files))]
    shapes = [jax.ShapeDtypeStruct(*each) for each in inputs.values()]
    shapes += [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in state]
    replaced = about["replaced"]
    results = [jax.ShapeDtypeStruct((len(about["figures"]),), np.float32)]
    results += [jax.ShapeDtypeStruct(state[i].shape, state[i].dtype) for i in replaced]
    # JAX calls modules that it exported itself, so one of the same signature lends its frame.
    frame = jax.export.export(
        jax.jit(lambda *_: [jax.numpy.zeros(r.shape, r.dtype) for r in results], keep_unused=True)
    )(*shapes)
    module = (folder / "update.stablehlo").read_bytes()
    call = dataclasses.replace(frame, mlir_module_serialized=module).call

    def update(batch: Batch, state: Sequence[Any]) -> tuple[Any, list[Any]]:
        # Batches come in few bytes, and get the dtypes of the model on the device.
        arrays = [batch[name].astype(dtype) for name, (_, dtype) in inputs.items()]
        figures, *new = call(*arrays, *state)
        values = dict(zip(replaced, new))
        return figures, [values.get(number, old) for number, old in enumerate(state)]

    return jax.jit(update, donate_argnums=1)


class Drawn:
    """A context whose value is an endless iterator of batches, and the place after each, that other
    processes draw ahead.
    """

    def __init__(self, files: Sequence[str], compiled: Path, place: Place, processes: int) -> None:
        self._files, self._compiled, self._place, self._ahead = files, compiled, place, processes
        context = multiprocessing.get_context("spawn")  # Not forked: JAX has threads.
        self._pool = concurrent.futures.ProcessPoolExecutor(processes, context)

    def __enter__(self) -> Iterator[tuple[Batch, Place]]:
        return self._batches()

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _batches(self) -> Iterator[tuple[Batch, Place]]:
        first = self._place.unit
        units = itertools.count(first)
        waiting: collections.deque = collections.deque()
        empty = 0
        for unit in itertools.count(first):
            while len(waiting) <= self._ahead:
                arguments = self._files, str(self._compiled), next(units)
                waiting.append(self._pool.submit(draw, *arguments))
            batches = waiting.popleft().result()
            begin = self._place.batch if unit == first else 0
            for number in range(begin, len(batches)):
                is_last = number + 1 == len(batches)
                yield batches[number], Place(unit + 1) if is_last else Place(unit, number + 1)
            empty = 0 if batches else empty + 1
            if empty > len(self._files):
                raise UserError("The files of tokens do not fill a batch. Make larger ones.")


def draw(files: Sequence[str], compiled: str, unit: int) -> list[Batch]:
    """The batches of a file in a pass over all; in every pass files have another order."""
    about = json.loads(Path(compiled, "update.json").read_text())
    tokenizer = load_tokenizer(str(next(Path(compiled).glob("*.model"))))
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
    """uint16 for ids and positions, as processes hand batches on; bool stays."""
    return np.bool_ if values.dtype == bool else np.uint16


if __name__ == "__main__":
    define_flags()
    run_binary(main)
