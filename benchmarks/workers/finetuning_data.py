"""Reads benchmark files as dictionaries, and scores answers: for workers of peers, whose
environments do not have this project.
"""

from __future__ import annotations

import collections
import csv
import json
import re
import string
import sys
from pathlib import Path

# Task -> folder in GLUE, columns of the texts, column of the label.
GLUE = {
    "sst-2": ("SST-2", ("sentence",), "label"),
    "mrpc": ("MRPC", ("#1 String", "#2 String"), "Quality"),
}


def request() -> dict:
    """The case to run: see `Case.request` in benchmarks/finetuning.py."""
    return json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def answer(case: dict, score: float) -> None:
    """Writes the score on the dev set for the benchmark."""
    Path(case["answer"]).write_text(json.dumps({"score": float(score)}), encoding="utf-8")


def read_rows(case: dict, split: str) -> list[dict]:
    """The examples of a split ("train" or "dev"), in the order of the files."""
    if case["task"] in GLUE:
        return _glue(case, split)
    if case["task"] == "squad1.1":
        return _squad(Path(case["data_dir"]) / f"{split}-v1.1.json")
    return _race(Path(case["data_dir"]) / split)


def _glue(case: dict, split: str) -> list[dict]:
    folder, texts, label = GLUE[case["task"]]
    path = Path(case["data_dir"]) / folder / f"{split}.tsv"
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        {"text": row[texts[0]], "pair": row[texts[-1]], "label": int(row[label])} for row in rows
    ]


def _squad(path: Path) -> list[dict]:
    return [
        {
            "id": asked["id"],
            "context": paragraph["context"],
            "question": asked["question"].lstrip(),
            "answers": [found["text"] for found in asked["answers"]],
            "start": asked["answers"][0]["answer_start"],
        }
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]
        for paragraph in article["paragraphs"]
        for asked in paragraph["qas"]
    ]


def _race(folder: Path) -> list[dict]:
    rows = []
    for path in sorted(folder.glob("*/*.txt")):
        passage = json.loads(path.read_text(encoding="utf-8"))
        asked = zip(passage["questions"], passage["options"], passage["answers"])
        rows += [
            {
                "article": passage["article"],
                "endings": [_filled(question, option) for option in options],
                "label": "ABCD".index(right),
            }
            for question, options, right in asked
        ]
    return rows


def _filled(question: str, option: str) -> str:
    """The option in the question's blank, or after the question if it has none."""
    return question.replace("_", option) if "_" in question else f"{question} {option}"


def f1(predicted: dict[str, str], rows: list[dict]) -> float:
    """SQuAD's F1 in percent: for each question the best over its right answers, then the mean."""
    best = [max(text_f1(predicted[row["id"]], text) for text in row["answers"]) for row in rows]
    return 100 * sum(best) / len(best)


def text_f1(predicted: str, right: str) -> float:
    """The F1 of the words of two answers; "" means no answer, and matches only "" itself."""
    first, second = _words(predicted), _words(right)
    if not first or not second:
        return float(first == second)
    common = sum((collections.Counter(first) & collections.Counter(second)).values())
    return 2 * common / (len(first) + len(second)) if common else 0.0


def _words(text: str) -> list[str]:
    """Words in lower case, without punctuation and articles: "The cat's" -> ["cats"]."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()
