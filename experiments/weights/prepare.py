"""Prepares text for training weights: shuffled text files, and files of tokens.

    python -m experiments.weights.prepare --corpus='corpus/*.train.jsonl.xz' \
        --heldout='corpus/*.heldout.jsonl.xz' --evaluation_sets='glue/*/dev.tsv' --output_dir=work

work/train/part-000.jsonl        documents of all domains in random order, for the CPU stages
work/heldout/wiki.jsonl          the held-out text of a domain
work/tokens/part-000.npz.xz      the same documents as uint16 ids, see tokens.py
work/manifest.json               counts, settings, hashes
"""

from __future__ import annotations

import collections
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from data_pipeline.command_line import flags, run_binary
from data_pipeline.corpus.sentences import split_document
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files
from data_pipeline.pretraining.tokenized import tokenize
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.fast.encoder import fast_encoder
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.weights import tokens
from experiments.weights.evaluation_sets import EvaluationSets, define_set_flag, documents

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Text")
    flags.DEFINE_string(
        "corpus",
        None,
        "Text files (globs, separated by commas) to train on; the domain of a file is its name up "
        "to the first point.",
        required=True,
    )
    flags.DEFINE_string("heldout", None, "Text files that are held out.", required=True)
    define_set_flag()
    flags.group("Output")
    flags.DEFINE_string("output_dir", None, "Folder to write the files to.", required=True)
    flags.DEFINE_string(
        "vocab_file", "albert_tf/weights/albert-small-en/spiece.model", "Vocabulary of the tokens."
    )
    flags.DEFINE_integer(
        "tokens", 0, "About how many tokens the token files hold; 0: those of all text.", 0
    )
    flags.DEFINE_float(
        "max_part_mb", 24.0, "Megabytes of a part, before it is compressed to about half.", above=0
    )
    flags.DEFINE_integer("seed", 0, "Seed of the order of the documents.")


def main() -> None:
    output = Path(FLAGS.output_dir)
    if any(any((output / name).glob("*")) for name in ("heldout", "train", "tokens")):
        raise UserError(
            f"--output_dir={output} has files of an earlier call, which may hold text that is left "
            "out now. Delete them, or name another folder."
        )
    sets = EvaluationSets(FLAGS.evaluation_sets)
    tokenizer = load_tokenizer(FLAGS.vocab_file)
    if tokenizer.vocab_size > 1 << 16:
        raise UserError(f"{FLAGS.vocab_file} has {tokenizer.vocab_size} pieces; at most 65,536.")
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for domain, texts in _by_domain(kept(FLAGS.heldout, sets, counts, "heldout")).items():
        _write_text(output / "heldout" / f"{domain}.jsonl", texts)
    everything = list(kept(FLAGS.corpus, sets, counts, "train"))
    random.Random(FLAGS.seed).shuffle(everything)
    parts = divide([text for _, text in everything], FLAGS.max_part_mb * 1e6)
    for number, texts in enumerate(parts):
        _write_text(output / "train" / f"part-{number:03d}.jsonl", texts)
    files = write_tokens(output / "tokens", [t for p in parts for t in p], tokenizer)
    manifest = {
        "vocab_file": FLAGS.vocab_file,
        "vocab_fingerprint": tokenizer.fingerprint,
        "evaluation_sets": FLAGS.evaluation_sets,
        "seed": FLAGS.seed,
        "domains": counts,
        "tokens": sum(file["tokens"] for file in files),
        "files": files,
    }
    atomic_files.write_json(str(output / "manifest.json"), manifest)
    print(json.dumps(manifest, indent=2))


def kept(
    patterns: str, sets: EvaluationSets, counts: dict[str, collections.Counter], split: str
) -> Iterator[tuple[str, str]]:
    """Domain and text of each document, without paragraphs that resemble an evaluation set."""
    for name, paragraphs in documents(patterns):
        domain = name.split(".")[0]
        left = [paragraph for paragraph in paragraphs if not sets.problems(paragraph)]
        counts[f"{domain}, {split}"].update(
            documents=bool(left), paragraphs=len(left), left_out=len(paragraphs) - len(left)
        )
        if left:
            yield domain, "\n\n".join(left)  # Blank lines, so that no paragraph is a wrapped line.


def _by_domain(found: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    by_domain = collections.defaultdict(list)
    for domain, text in found:
        by_domain[domain].append(text)
    return by_domain


def divide(texts: Sequence[str], size: float) -> list[list[str]]:
    """Divides texts into parts of about `size` bytes."""
    parts: list[list[str]] = []
    room = 0.0
    for text in texts:
        if room <= 0:
            parts.append([])
            room = size
        parts[-1].append(text)
        room -= len(text.encode())
    return parts


def _write_text(path: Path, texts: Sequence[str]) -> None:
    lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.write_text(str(path), lines)


def write_tokens(folder: Path, texts: list[str], tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Writes files with about --tokens tokens in total; returns name, tokens, size, hash."""
    folder.mkdir(parents=True, exist_ok=True)
    encode, left = fast_encoder(tokenizer), FLAGS.tokens or float("inf")
    files: list[dict[str, Any]] = []
    # A token has about four letters of text, and takes two bytes.
    for texts_of_part in divide(texts, min(2 * FLAGS.max_part_mb * 1e6, 4 * left)):
        if left <= 0:
            break
        part = tokenize([split_document(text) for text in texts_of_part], tokenizer, encode)
        path = folder / f"part-{len(files):03d}.npz.xz"
        atomic_files.write_bytes(str(path), tokens.packed(part))
        left -= len(part.ids)
        about = {"bytes": path.stat().st_size, "sha256": atomic_files.file_sha256(str(path))}
        files.append({"name": path.name, "tokens": len(part.ids), **about})
    return files


if __name__ == "__main__":
    define_flags()
    run_binary(main)
