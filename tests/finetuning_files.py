"""Made-up files of every fine-tuning task in its official layout, and what a tiny model needs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.finetuning.tasks.squad import SQUAD_TASKS
from albert_tf.finetuning.tasks.table import TASKS
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer
from tests.conformance_cases import SMALLEST


def rows(*lines: str) -> str:
    """Lines, each with its end."""
    return "".join(f"{line}\n" for line in lines)


def json_rows(*records: dict[str, Any]) -> str:
    """JSON lines."""
    return rows(*map(json.dumps, records))


OPTIONS = {"choice1": "He ran.", "choice2": "He sat.", "question": "cause"}
COPA = {"premise": "The cat fled.", **OPTIONS, "label": 0, "idx": 0}
CB = {"premise": "It rains.", "hypothesis": "It is wet.", "label": "neutral", "idx": 0}
BOOLQ = {"question": "is it", "passage": "It is.", "label": True, "idx": 0}
RACE = {"article": "A cat.", "questions": ["A _?"], "options": [["a", "b", "c", "d"]]}
RACE |= {"answers": ["A"]}

CONTEXT = "the cat sat on a mat while every dog ran off quickly to see what was in there"
ASKED = {
    "id": "q1", "question": "who sat?", "answers": [{"text": "cat", "answer_start": 4}],
    "is_impossible": False,
}  # fmt: skip
IMPOSSIBLE = {"id": "q2", "question": "who flew?", "answers": [], "is_impossible": True}
LONG = {**ASKED, "id": "long", "question": "what was there? " * 1875}  # 30,000 characters.


def squad(*asked: dict[str, Any], context: str = CONTEXT) -> str:
    """A file of SQuAD with a paragraph; the id of the first question is in line 9."""
    paragraph = {"context": context, "qas": list(asked)}
    return json.dumps({"data": [{"paragraphs": [paragraph]}]}, indent=1)


PAIR = "index\tsentence1\tsentence2\tlabel"
ENTAILMENT = ("0\ta\tb\tentailment", "1\ta\tcat\tnot_entailment")
MNLI = "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
MNLI += "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label"
STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
DASHES = "\t-" * 7  # In columns that nothing reads.
# Task -> folder, name of the file of a split, and a content that is right.
GOOD = {
    "cola": ("CoLA", "{}.tsv", rows("s\t1\t\tA cat sat.", "s\t0\t*\tCat a sat.")),
    "sst-2": ("SST-2", "{}.tsv", rows("sentence\tlabel", "good\t1", "bad\t0")),
    "mrpc": (
        *("MRPC", "{}.tsv"),
        rows("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t7\t8\ta\ta", "0\t7\t9\ta\tb"),
    ),
    "sts-b": (
        *("STS-B", "{}.tsv"),
        rows(STSB, f"0{DASHES[:12]}\ta\tb\t2.5", f"1{DASHES[:12]}\ta\ta\t5"),
    ),
    "qqp": (
        *("QQP", "{}.tsv"),
        rows("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "0\t1\t2\ta\tb\t0",
             "1\t1\t3\ta\ta\t1"),
    ),
    "mnli": (
        *("MNLI", "{}.tsv"),
        rows(MNLI, f"0{DASHES}\ta\tb\tneutral\tneutral", f"1{DASHES}\ta\ta\tneutral\tentailment"),
    ),
    "qnli": (
        *("QNLI", "{}.tsv"),
        rows("index\tquestion\tsentence\tlabel", *ENTAILMENT),
    ),
    "rte": ("RTE", "{}.tsv", rows(PAIR, *ENTAILMENT)),
    "wnli": ("WNLI", "{}.tsv", rows(PAIR, "0\ta\tb\t0", "1\ta\ta\t1")),
    "squad1.1": ("", "{}-v1.1.json", squad(ASKED, LONG)),
    "squad2.0": ("", "{}-v2.0.json", squad(ASKED, IMPOSSIBLE, LONG)),
    "race": ("", "{}/middle/1.txt", json.dumps(RACE)),
    "boolq": ("BoolQ", "{}.jsonl", json_rows(BOOLQ, {**BOOLQ, "label": False, "idx": 1})),
    "cb": ("CB", "{}.jsonl", json_rows(CB, {**CB, "label": "entailment", "idx": 1})),
    "copa": ("COPA", "{}.jsonl", json_rows(COPA, {**COPA, "label": 1, "idx": 1})),
    "tsv": ("", "{}.tsv", rows("text\tlabel", "good\ta", "bad\tb")),
    "regression": ("", "{}.tsv", rows("text\tlabel", "good\t1.5", "bad\t2")),
    "pairs": ("", "{}.tsv", rows("text\tpair\tlabel", "good\ta\t0.5", "bad\tbad\t1")),
    "tagging": ("", "{}.conll", rows("cat\tB-X", "sat\tO", "", "mat\tO")),
}  # fmt: skip
LENGTHS = {"max_seq_length": 32}
WINDOWS = {"doc_stride": 8, "max_query_length": 16}  # Two for the long question about 18 words.


def lengths_of(task: str) -> dict[str, int]:
    """The flags of lengths that a task has a use for."""
    return {**LENGTHS, **(WINDOWS if task in SQUAD_TASKS else {})}


def write_files(folder: Path, task: str, **changed: str | bytes | None) -> dict[str, Path]:
    """Writes a task's files of training and evaluation; returns the flags that name them.

    Args:
      folder: where a folder `data` is made.
      task: its name.
      changed: split -> another content than the right one; None: no file.
    """
    own, name, good = GOOD[task]
    found = {}
    for split in ("train", *TASKS[task].dev_splits):
        content = changed.get(split, good)
        path = folder / "data" / own / name.format(split)
        path.parent.mkdir(parents=True, exist_ok=True)
        if task == "race":
            (folder / "data" / split / "high").mkdir(parents=True)
            (folder / "data" / split / "high" / "1.txt").write_text(good)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        found[f"{split}_file"] = path
    return found if TASKS[task].reader is None else {"data_dir": folder / "data"}


def six_updates(data: Path, work: Path) -> dict[str, object]:
    """Flags of a training of six updates, evaluated and saved after every second."""
    return {
        "train_file": data / "train.tsv",
        "dev_file": data / "dev.tsv",
        "config_file": work / "config.json",
        "vocab_file": work / "vocabulary" / "spiece.model",
        "max_seq_length": 16,
        "train_batch_size": 4,
        "learning_rate": 0.01,
        "num_train_steps": 6,
        "steps_per_loop": 2,
        "eval_steps": 2,
        "checkpoint_steps": 2,
    }


def read_answers(path: Path) -> list[dict[str, str]]:
    """The rows of a table of predictions."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def write_start(folder: Path, words: list[str]) -> AlbertConfig:
    """Writes vocab.txt with these words, and config.json of a model with a layer of 16 for it."""
    pieces = [*WordPieceTokenizer.SPECIAL_PIECES, *dict.fromkeys(words)]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    config = SMALLEST.replace(vocab_size=len(pieces))
    config.to_json_file(str(folder / "config.json"))
    return config
