"""The locations of real examples for each fine-tuning task, and the form of their labels."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.finetuning_files import Layout, Lines, Race, Record, Sentences, Squad


class Labels:
    """Reads and shuffles the labels of examples in records."""

    def values(self, records: Sequence[Any]) -> list[Any]:
        """The labels of all examples, in order."""
        raise NotImplementedError

    def replace(self, records: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """The records with other labels."""
        raise NotImplementedError

    def shuffled(self, records: Sequence[Any], draw: random.Random) -> list[Any]:
        """The records with shuffled labels, or wrong ones if labels of others have no meaning."""
        values = self.values(records)
        draw.shuffle(values)
        return self.replace(records, values)


@dataclasses.dataclass(frozen=True)
class Column(Labels):
    """A column of TSV, counted from 0."""

    number: int

    def values(self, records: Sequence[str]) -> list[str]:
        return [line.rstrip("\r").split("\t")[self.number] for line in records]

    def replace(self, records: Sequence[str], values: Sequence[str]) -> list[str]:
        rows = [line.rstrip("\r").split("\t") for line in records]
        return [
            "\t".join([*row[: self.number], value, *row[self.number :][1:]])
            for row, value in zip(rows, values)
        ]


@dataclasses.dataclass(frozen=True)
class Field(Labels):
    """A field of JSON lines; `names` are the names of its values in predictions."""

    name: str
    names: tuple[str, ...] = ()

    def values(self, records: Sequence[str]) -> list[str]:
        found = [json.loads(line)[self.name] for line in records]
        return [self.names[value] if self.names else value for value in found]

    def replace(self, records: Sequence[str], values: Sequence[str]) -> list[str]:
        raw = {
            name: bool(place) if self.name == "answer" else place
            for place, name in enumerate(self.names)
        }
        return [
            json.dumps({**json.loads(line), self.name: raw.get(value, value)})
            for line, value in zip(records, values)
        ]


class Tags(Labels):
    """The last column of each word in CoNLL; every word has a label."""

    def values(self, records: Sequence[list[str]]) -> list[str]:
        return [line.split("\t")[-1] for words in records for line in words]

    def replace(self, records: Sequence[list[str]], values: Sequence[str]) -> list[list[str]]:
        tags = iter(values)
        return [[f"{line.split(chr(9))[0]}\t{next(tags)}" for line in words] for words in records]


class Letters(Labels):
    """The answers of RACE's passages."""

    def values(self, records: Sequence[dict]) -> list[str]:
        return [letter for record in records for letter in record["answers"]]

    def replace(self, records: Sequence[dict], values: Sequence[str]) -> list[dict]:
        letters = iter(values)
        return [
            {**record, "answers": [next(letters) for _ in record["answers"]]} for record in records
        ]


class Spans(Labels):
    """SQuAD: the texts of the answers to each question; empty if it has none.

    An answer is meaningless in another context, so shuffling takes a random word of the context.
    """

    def values(self, records: Sequence[dict]) -> list[list[str]]:
        return [
            [answer["text"] for answer in asked["answers"]]
            for record in records
            for asked in record["qas"]
        ]

    def shuffled(self, records: Sequence[dict], draw: random.Random) -> list[dict]:
        have_none = [
            each.get("is_impossible", False) for record in records for each in record["qas"]
        ]
        draw.shuffle(have_none)
        found = []
        for record in records:
            asked = []
            for question in record["qas"]:
                word, has_none = draw.choice(record["context"].split()), have_none.pop(0)
                answer = {"text": word, "answer_start": record["context"].index(word)}
                answers = [] if has_none else [answer]
                asked.append({**question, "answers": answers, "is_impossible": has_none})
            found.append({**record, "qas": asked})
        return found


@dataclasses.dataclass(frozen=True)
class RealTask:
    """A task with its real examples.

    Attributes:
      task: as --task has it.
      layout: the layout of its files.
      labels: the form of its labels.
      source: file or folder below --data_dir.
      copy: the file that the task's program reads, with {split}; "": given by --train_file.
      max_seq_length: S.
      score: "accuracy", "matthews", "pearson", "f1" (of SQuAD's answers) or
        "tags" (F1 of tags other than O).
      note: differences from the official training set.
      read_with: layout of the source; None: the same as `layout`.
      dev_splits: names of the files to evaluate.
      choose: selects and converts records; None: all, unchanged.
      trained_by: the task whose model predicts; "": this one.
    """

    task: str
    layout: Layout
    labels: Labels
    source: str
    copy: str
    max_seq_length: int = 128
    score: str = "accuracy"
    note: str = ""
    read_with: Layout | None = None
    dev_splits: tuple[str, ...] = ("dev",)
    choose: Callable[[list[Record]], list[Record]] | None = None
    trained_by: str = ""


def _columns(*numbers: int) -> Callable[[list[str]], list[str]]:
    """Selects columns of TSV, and drops rows that lack one of them."""

    def choose(lines: list[str]) -> list[str]:
        rows = [line.rstrip("\r").split("\t") for line in lines]
        return [
            "\t".join(row[number] for number in numbers) for row in rows if len(row) > max(numbers)
        ]

    return choose


def _impossible_first(paragraphs: list[dict]) -> list[dict]:
    """Moves paragraphs with unanswerable questions to the front: they are rare among the first."""
    return sorted(paragraphs, key=lambda p: not any(q["is_impossible"] for q in p["qas"]))


def _high_last(passages: list[dict]) -> list[dict]:
    """Sorts passages in the order in which RACE is read and predicted."""
    return sorted(passages, key=lambda passage: passage["level"] == "high")


_SENTENCE = "sentence\tlabel"
_PAIR = "index\tsentence1\tsentence2\tlabel"
_STS = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
_MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
_SICK = "pair\ttext\ttext2\tnumber\tlabel"
REAL_TASKS = {
    real.task: real
    for real in (
        RealTask("cola", Lines(), Column(1), "glue/CoLA/train.tsv", "CoLA/{split}.tsv",
                 score="matthews"),
        RealTask("sst-2", Lines(_SENTENCE), Column(1), "glue/SST-2/train.tsv", "SST-2/{split}.tsv"),
        RealTask("mrpc", Lines(_MRPC), Column(0), "glue/MRPC/train.tsv", "MRPC/{split}.tsv"),
        RealTask("sts-b", Lines(_STS), Column(9), "glue/STS-B/train.tsv", "STS-B/{split}.tsv",
                 score="pearson"),
        RealTask("qqp", Lines("question1\tquestion2\tis_duplicate"), Column(2),
                 "glue/QQP/dev_subset.tsv", "QQP/{split}.tsv", note="of the dev set",
                 read_with=Lines(), choose=_columns(3, 4, 5)),
        RealTask("mnli", Lines("sentence1\tsentence2\tgold_label"), Column(2),
                 "glue/MNLI/matched_1000.tsv", "MNLI/{split}.tsv",
                 note="of the matched dev set, in a made-up file", read_with=Lines(),
                 dev_splits=("dev_matched", "dev_mismatched"), choose=_columns(1, 2, 0)),
        RealTask("ax", Lines("sentence1\tsentence2\tgold_label"), Column(2),
                 "glue/MNLI/matched_1000.tsv", "diagnostic/diagnostic.tsv",
                 note="answered by the model of mnli", read_with=Lines(), dev_splits=("test",),
                 choose=_columns(1, 2, 0), trained_by="mnli"),
        RealTask("qnli", Lines("index\tquestion\tsentence\tlabel"), Column(3),
                 "glue/QNLI/dev.tsv", "QNLI/{split}.tsv", note="of the dev set"),
        RealTask("rte", Lines(_PAIR), Column(3), "glue/RTE/train.tsv", "RTE/{split}.tsv"),
        RealTask("wnli", Lines(_PAIR), Column(3), "glue/WNLI/train.tsv", "WNLI/{split}.tsv"),
        RealTask("squad1.1", Squad(), Spans(), "squad/train-v1.1.first_articles.json",
                 "{split}-v1.1.json", 384, "f1", "the first articles"),
        RealTask("squad2.0", Squad(), Spans(), "squad/train-v2.0.first10articles.json",
                 "{split}-v2.0.json", 384, "f1", "the first articles", choose=_impossible_first),
        RealTask("race", Race(), Letters(), "race/train", "{split}", 256),
        RealTask("boolq", Lines(), Field("answer", ("false", "true")),
                 "superglue/BoolQ/dev.jsonl", "BoolQ/{split}.jsonl", note="of the dev set"),
        RealTask("cb", Lines(), Field("label"), "superglue/CB/train.jsonl", "CB/{split}.jsonl"),
        RealTask("copa", Lines(), Field("label", ("choice1", "choice2")),
                 "superglue/COPA/train.jsonl", "COPA/{split}.jsonl"),
        RealTask("tsv", Lines(_SICK), Column(4), "sick/SICK_train.txt", "", note="SICK"),
        RealTask("regression", Lines(_SICK), Column(3), "sick/SICK_train.txt", "",
                 score="pearson", note="SICK"),
        RealTask("tagging", Sentences(), Tags(), "wnut17/wnut17train.conll", "",
                 score="tags", note="WNUT-17"),
    )
}  # fmt: skip


def records_of(real: RealTask, data_dir: Path, count: int) -> list[Record]:
    """The first `count` real examples of a task, in the order in which its program reads them."""
    records = (real.read_with or real.layout).read(data_dir / real.source)
    if real.choose:
        records = real.choose(records)
    return in_order(real, real.layout.first(records, count))


def in_order(real: RealTask, records: list[Record]) -> list[Record]:
    """The records in the order in which the task's program reads them."""
    return _high_last(records) if isinstance(real.layout, Race) else records
