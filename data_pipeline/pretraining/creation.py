"""Makes a folder of pre-training records from a corpus, in one or more processes; can be resumed.

This module divides the corpus into blocks. The records of a block are the result of a pure function
(`block_records`), which any process may compute.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import errno
import functools
import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from data_pipeline.corpus import documents
from data_pipeline.corpus.blocks import TextBlock, automatic_block_bytes, group_files, text_bytes
from data_pipeline.corpus.deduplication import SeenDigests, document_digests
from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.files import lock, storage
from data_pipeline.pretraining import block_records
from data_pipeline.pretraining.block_records import BlockResult, Job
from data_pipeline.pretraining.manifest import extra_files, manifest_fields
from data_pipeline.pretraining.merged_results import MergedResults
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import record_folder
from data_pipeline.tokenizers.base import Tokenizer

# Each process works on one block; more blocks are read ahead within these limits. A single process
# reads for all others, at about 250 MB/s, which is enough for 20 processes.
_BLOCKS_PER_PROCESS, _BYTES_AHEAD = 2, 256 << 20


@dataclasses.dataclass(frozen=True)
class Plan:
    """The work of one run: files, their division, and the job; equal plans give equal bytes."""

    files: Sequence[str]
    sizes: Sequence[int]  # Stored bytes of each file.
    block_bytes: int  # Bytes of text in a block.
    job: Job

    @property
    def fingerprint(self) -> str:
        """Hexadecimal SHA-256, equal for equal plans; files count by name and size."""
        digest = hashlib.sha256(self.job.fingerprint)
        corpus = self.job.corpus
        decides = [self.block_bytes, corpus.input_format, corpus.deduplicate]
        files = list(zip(self.files, self.sizes))
        digest.update(json.dumps([decides, files]).encode("utf-8"))
        return digest.hexdigest()

    @functools.cached_property
    def groups(self) -> list[list[str]]:
        """The groups of files, see `group_files`."""
        return group_files(self.files, self.sizes, self.block_bytes)


def make_plan(
    corpus: Corpus,
    output_dir: str,
    tokenizer: Tokenizer,
    settings: PretrainingSettings,
    shard_mb: float = 0,
    fast: bool = True,
) -> Plan:
    """Makes the plan of a run, which can be sent to other processes and machines. `shard_mb`,
    `fast`: see `create_pretraining_data`.
    """
    settings.check_no_run_is_needed()
    files = corpus.files()
    sizes = storage.sizes(files)
    block_bytes = int(shard_mb * (1 << 20)) or automatic_block_bytes(
        sum(map(text_bytes, files, sizes))
    )
    job = Job(
        dataclasses.replace(corpus, patterns=()),
        settings,
        tokenizer.vocab_file,
        tokenizer.settings,
        tokenizer.identity,
        record_folder.partial_dir(output_dir),
        fast,
    )
    return Plan(files, sizes, block_bytes, job)


def _blocks_with_dropped(plan: Plan) -> Iterator[tuple[TextBlock, list[int]]]:
    """Yields all blocks, each with the numbers of the documents to drop."""
    corpus, seen = plan.job.corpus, SeenDigests()
    for group, files in enumerate(plan.groups):
        for block in corpus.blocks(group, files, plan.block_bytes):
            yield block, seen.add(document_digests(block, corpus)) if corpus.deduplicate else []


def _end_with_parent() -> None:
    """Makes a worker end when the main process ends, even if that is killed."""
    # A worker that waits on a queue does not notice that its parent was killed.
    parent = multiprocessing.parent_process()
    assert parent is not None  # Every worker has a parent.

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """A context that delays Ctrl-C until its end."""
    # Workers started in it inherit the signal mask, and leave Ctrl-C to the main process, even
    # during their imports.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _has_room(pending: Collection[TextBlock], num_processes: int) -> bool:
    """Whether another block may be read while these blocks wait or are processed."""
    return len(pending) < num_processes or (
        len(pending) < _BLOCKS_PER_PROCESS * num_processes
        and sum(block.text_bytes for block in pending) < _BYTES_AHEAD
    )


def _process_in_parallel(
    blocks: Iterable[tuple[TextBlock, list[int]]], job: Job, num_processes: int
) -> Iterator[tuple[int, BlockResult]]:
    """Yields (stored bytes, result) of each block, in order of completion."""
    # Not "fork": if the caller has loaded TensorFlow, it does not work in a forked process.
    context = multiprocessing.get_context("spawn")
    blocks = iter(blocks)
    pending: dict[concurrent.futures.Future, TextBlock] = {}
    with concurrent.futures.ProcessPoolExecutor(
        num_processes, mp_context=context, initializer=_end_with_parent
    ) as pool:
        try:
            while True:
                while (
                    _has_room(pending.values(), num_processes)
                    and (found := next(blocks, None)) is not None
                ):
                    with _no_interrupts():  # It may start a worker.
                        task = pool.submit(block_records.process_block, *found, job)
                    pending[task] = found[0]
                if not pending:
                    return
                done, _ = concurrent.futures.wait(
                    pending, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for task in done:
                    yield pending.pop(task).stored_bytes, task.result()
        except concurrent.futures.process.BrokenProcessPool:
            raise UserError(
                "A process that makes records was killed, perhaps for lack of memory for "
                f"{num_processes} of them. Run the same command again, with a lower "
                "--num_processes if necessary: finished files are kept."
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def process_blocks(
    plan: Plan, num_processes: int, tokenizer: Tokenizer
) -> Iterator[tuple[int, BlockResult]]:
    """Makes the records of all blocks; yields (stored bytes, result) of each, in any order."""
    if num_processes > 1:
        yield from _process_in_parallel(_blocks_with_dropped(plan), plan.job, num_processes)
        return
    for block, dropped in _blocks_with_dropped(plan):
        yield block.stored_bytes, block_records.process_block(block, dropped, plan.job, tokenizer)


def available_processes() -> int:
    """Number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _manifest(plan: Plan, tokenizer: Tokenizer, merged: MergedResults) -> dict[str, Any]:
    settings, corpus = plan.job.settings, plan.job.corpus
    statistics = merged.statistics
    return {
        **manifest_fields(merged.shards(), settings, tokenizer),
        "seed": settings.seed,
        "settings": {**settings.to_manifest(), "input_format": corpus.input_format},
        "fingerprint": plan.fingerprint,
        "corpus": {
            "files": [os.path.basename(path) for path in plan.files],
            "bytes": sum(plan.sizes),
            "text_bytes": merged.text_bytes,
            "formats": sorted(statistics.formats),
            **dict(statistics.corpus),
            "unknown_share": statistics.unknown_share,
            "held_share": statistics.held_share,
            "problems": dict(sorted(merged.problems.items())),
            "problem_examples": merged.examples(),
        },
        "statistics": statistics.summary(tokenizer.pieces),
    }


def finish(
    plan: Plan, output_dir: str, tokenizer: Tokenizer, merged: MergedResults
) -> dict[str, Any]:
    """Publishes the records of all blocks and returns the manifest; UserError if there are none."""
    manifest = _manifest(plan, tokenizer, merged)
    if not manifest["num_records"]:
        storage.remove_folder(plan.job.folder)
        raise UserError(_nothing_made(plan.files, manifest))
    files = extra_files(tokenizer, merged.statistics)
    return record_folder.commit(output_dir, manifest, files, prefix=plan.job.prefix)


def _nothing_made(files: Sequence[str], manifest: dict[str, Any]) -> str:
    """The message for a corpus that yields no records."""
    corpus = manifest["corpus"]
    found = corpus["problem_examples"][:3] or corpus["problems"]
    problems = "; ".join([*found, *manifest["statistics"]["skipped"]])
    return (
        f"No record could be made of {len(files)} file(s), {corpus.get('documents', 0)} "
        f"document(s) and {corpus.get('tokens', 0)} token(s) starting with {files[0]}: expected "
        "documents of at least two words, one sentence per line, blank lines between "
        f"documents{': ' if problems else ''}{problems}."
    )


def prepare(plan: Plan, output_dir: str, overwrite: bool) -> dict[str, Any] | None:
    """Prepares the output folder; returns the manifest if only the commit of the same plan was
    missing. Finished data that may not be replaced are a UserError.
    """
    # A run may have been interrupted while it published finished files.
    manifest = record_folder.complete_commit(output_dir)
    if manifest and manifest.get("fingerprint") == plan.fingerprint:
        return manifest
    record_folder.check_output_dir(output_dir, overwrite)
    storage.make_folder(plan.job.folder)
    return None


def clean_up(output_dir: str) -> None:
    """Removes the files that a failed run left in a folder of records, except finished blocks."""
    folder = record_folder.partial_dir(output_dir)
    if not any(name.startswith("block-") for name in storage.names_in(folder)):
        storage.remove_folder(folder)


@lock.locks("output_dir")
def create_pretraining_data(
    corpus: Corpus,
    output_dir: str,
    tokenizer: Tokenizer,
    settings: PretrainingSettings,
    *,
    num_processes: int = 1,
    shard_mb: float = 0,
    fast: bool = True,
    overwrite: bool = False,
    show_progress: bool = False,
) -> dict[str, Any]:
    """Writes a folder of records with its manifest, and returns the manifest.

    If it is interrupted and called again with the same arguments, finished blocks of text are kept,
    and the result is the same. After an error, such as a full disk, the folder contains nothing
    that a reader would accept.

    Args:
      corpus: the text.
      output_dir: folder to write: the shards, the vocabulary, tokenizer_settings.json and
        label_counts.json.
      tokenizer: the tokenizer of the text.
      settings: the settings of the records.
      num_processes: number of processes, which does not affect the records; 0: one per processor.
      shard_mb: megabytes of text per block; each block becomes one file per copy. 0: a 32nd of the
        corpus, between 1 and 32.
      fast: tokenize each word of the corpus once; False: each sentence as a whole. Ids are equal.
      overwrite: replace finished data in `output_dir`.
      show_progress: show a progress bar on stderr.
    """
    plan = make_plan(corpus, output_dir, tokenizer, settings, shard_mb, fast)
    manifest = prepare(plan, output_dir, overwrite)
    if manifest:
        return manifest
    merged = MergedResults(tokenizer.vocab_size)
    try:
        with documents.progress_bar(sum(plan.sizes), show_progress) as bar:
            started = time.monotonic()
            count = num_processes or available_processes()
            for stored_bytes, result in process_blocks(plan, count, tokenizer):
                merged.add(result)
                num_records = merged.statistics.records["records"]
                speed = merged.text_bytes / 1e6 / (time.monotonic() - started)
                bar.set_postfix_str(f"{num_records:,} records, {speed:.1f} MB/s of text")
                bar.update(stored_bytes)
        return finish(plan, output_dir, tokenizer, merged)
    except OSError as error:
        # The pool re-raises a worker's error here, with its errno.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(
            f"No disk space is left for {output_dir}. Free some and run the same command "
            "again: finished files are kept."
        ) from error
    finally:
        clean_up(output_dir)
