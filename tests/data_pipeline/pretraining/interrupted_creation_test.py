"""Records are finished by the same command after any kill, and memory does not grow meanwhile."""

import concurrent.futures
import gc
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from data_pipeline.corpus.blocks import TextBlock
from data_pipeline.corpus.text_part import TextPart
from data_pipeline.errors import UserError
from data_pipeline.pretraining import block_records, creation, examples
from data_pipeline.records import record_folder

ROOT = Path(__file__).parents[3]


def test_finished_blocks_are_kept(tmp_path, corpus_file, tokenizer, monkeypatch, contents, create):
    """A failure in the middle: what is finished is not made again, and the end is the same."""
    whole = create(corpus_file, tmp_path / "whole", tokenizer)
    made, process = [], examples._tokenize

    def failing(documents, tokenizer, fast):
        made.append(1)
        if len(made) == 4:
            raise OSError(28, "No space left on device")
        return process(documents, tokenizer, fast)

    monkeypatch.setattr(examples, "_tokenize", failing)
    with pytest.raises(UserError, match="No disk space is left.*finished files are kept"):
        create(corpus_file, tmp_path / "a", tokenizer)
    with pytest.raises(UserError, match=r"holds no manifest.json"):
        record_folder.read_manifest(str(tmp_path / "a"))
    assert create(corpus_file, tmp_path / "a", tokenizer) == whole
    assert len(made) == 4 + len(whole["files"]) - 3
    assert contents(tmp_path / "a") == contents(tmp_path / "whole")


def test_memory_does_not_grow_with_the_blocks(
    tmp_path, corpus_file, tokenizer, monkeypatch, create
):
    """A block more costs what the manifest says of it, not what was counted in it."""
    create(corpus_file, tmp_path / "first", tokenizer)
    process_block, made, names = block_records.process_block, [], []

    def copy_of_the_first(block, dropped, job, *unused):
        names.append(block.name)
        if not made:
            made.append(process_block(block, dropped, job).to_json())
        return block_records.BlockResult.from_json({**made[0], "name": block.name})

    monkeypatch.setattr(block_records, "process_block", copy_of_the_first)
    # All blocks name one file, which two threads would move at once, and the first folder has.
    monkeypatch.setattr(record_folder, "_COMMIT_THREADS", 1)
    monkeypatch.setattr(record_folder, "_not_as_written", lambda *unused: [])
    peaks = []
    for shard_mb in (0.01, 0.01, 0.001):  # The first fills caches.
        names.clear()
        gc.collect()
        tracemalloc.start()
        create(corpus_file, tmp_path / str(len(peaks)), tokenizer, shard_mb=shard_mb)
        peaks.append((len(names), tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
    _, (few, low), (many, high) = peaks
    assert many > few + 300
    assert (high - low) / (many - few) < 4000, f"{peaks}: its counts take 8 * 2,500 bytes"


@pytest.fixture
def start(tmp_path, corpus_file, tokenizer):
    """(name of the folder, *flags) -> the program as a process that leads a group of its own."""

    def start_program(name, *flags, stderr=subprocess.DEVNULL):
        command = [
            sys.executable, "-m", "data_pipeline.create_pretraining_data",
            f"--input={corpus_file}", f"--vocab_file={tokenizer.vocab_file}",
            f"--output_dir={tmp_path / name}", "--num_processes=2", "--shard_mb=0.02", *flags,
        ]  # fmt: skip
        return subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            text=True,
            start_new_session=True,
            # A job in the background ignores Ctrl-C, and its children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return start_program


@pytest.mark.parametrize("kills", [1, pytest.param(12, marks=pytest.mark.table)])
def test_killed_at_any_moment_and_run_again(tmp_path, start, contents, kills):
    """kill -9 of the program, whose workers end with it: the result is the same to the byte."""
    flags = ("--max_seq_length=64", "--dupe_factor=2")
    begin = time.monotonic()
    assert start("whole", *flags).wait() == 0
    duration = time.monotonic() - begin
    rng = np.random.default_rng(0)
    process, deadline = start("a", *flags), time.monotonic() + 300
    while not list((tmp_path / "a").glob(".partial/block-*")):  # The first one in the midst of it.
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.001)
    process.kill()
    process.wait()
    for _ in range(kills - 1):
        process = start("a", *flags)
        try:
            process.wait(float(rng.uniform(0.2, 0.9 * duration)))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            if (tmp_path / "a" / "manifest.json").exists():  # It was done, but for tidying up.
                shutil.rmtree(tmp_path / "a" / ".partial", ignore_errors=True)
                (tmp_path / "a" / "writing.lock").unlink(missing_ok=True)
                break
    else:
        assert start("a", *flags).wait() == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "whole")


@pytest.mark.parametrize("num_children", [pytest.param(1, marks=pytest.mark.table), 3])
def test_ctrl_c_while_the_workers_start(start, num_children):
    """It reaches all processes of a terminal: the program says so in a line, workers nothing."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("SKIPPED: this system does not list its processes in /proc")
    process = start("a", "--dupe_factor=500", stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(_children(process.pid)) < num_children and time.monotonic() < deadline:
        time.sleep(0.01)  # multiprocessing's own helper, then the workers.
    time.sleep(0.3)  # In the midst of their imports.
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert errors.endswith("interrupted\n") and errors.count("interrupted") == 1
    assert "Traceback" not in errors


def test_workers_end_with_a_killed_program(start):
    process = start("a", "--dupe_factor=500")
    if not Path("/proc/self/stat").exists():
        process.kill()
        pytest.skip("SKIPPED: this system does not list its processes in /proc")
    deadline = time.monotonic() + 60
    while len(workers := _children(process.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)  # Two workers, and multiprocessing's own helper.
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(workers) >= 3
    while any(map(_is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_is_alive, workers))


def _stat(pid):
    """State, parent and group of a process; None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()[:3]


def _children(pid):
    """The processes that it started, without the filter of notes, which has a group of its own."""
    pids = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    found = ((child, _stat(child)) for child in pids)
    return [child for child, stat in found if stat and stat[1] == str(pid) and stat[2] != child]


def _is_alive(pid):
    return (_stat(pid) or "Z")[0] != "Z"


def test_little_text_waits_for_the_other_processes(monkeypatch):
    """Each process has a block; beyond that, blocks are read ahead up to so many bytes."""
    held = []

    class Pool(concurrent.futures.ThreadPoolExecutor):
        def __init__(self, num_processes, mp_context, initializer):
            super().__init__(1)

    def text_block(index):
        part = TextPart("a.txt", "lines", 1, bytes(100))
        return TextBlock(0, index, [part], 50)

    def blocks():
        for index in range(20):
            held.append(index - len(finished))
            yield text_block(index), []

    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(block_records, "process_block", lambda block, dropped, job: block.index)
    monkeypatch.setattr(creation, "_BYTES_AHEAD", 300)
    for num_processes, most in ((1, 2), (2, 3), (8, 8)):
        finished: list[tuple[int, int]] = []
        for result in creation._process_in_parallel(blocks(), None, num_processes):
            finished.append(result)
        assert sorted(finished) == [(50, index) for index in range(20)]
        assert most - 1 <= max(held) < most + 1
        held.clear()
