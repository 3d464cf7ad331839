"""Key figures of the demonstration, read from the files of its stages, and its curves."""

from __future__ import annotations

import collections
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from albert_tf.finetuning.runs.series import SERIES_FILE
from albert_tf.training.report.metrics_file import METRICS_FILE, read_metrics
from data_pipeline.finetuning.tsv import read_tsv
from data_pipeline.records.record_folder import read_manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CLASSIFIERS = ("classifier", "classifier_from_scratch")


def _json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def _megabytes(path: Path) -> float:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6


def corpus(out: Path) -> str:
    """Size of the corpus."""
    texts = [(out / "corpus" / f"{split}.txt").read_bytes() for split in ("train", "heldout")]
    documents = [sum(1 for document in text.split(b"\n\n") if document.strip()) for text in texts]
    return f"{len(texts[0]) / 1e6:.1f} MB, {documents[0]} documents, {documents[1]} held out"


def records(out: Path) -> str:
    """Numbers of records."""
    train, heldout = (read_manifest(str(out / "records" / split)) for split in ("train", "heldout"))
    length = train["max_seq_length"]
    return f"{train['num_records']} records of {length} tokens, {heldout['num_records']} held out"


def adaptation(out: Path) -> str:
    """Held-out words before and after."""
    rows = read_metrics(str(out / "adaptation" / METRICS_FILE))
    before, *_, after = [row for row in rows if row["split"] == "eval"]
    loss, accuracy = (
        " to ".join(f"{float(row[name]):.{digits}f}" for row in (before, after))
        for name, digits in (("masked_lm_loss", 2), ("masked_lm_accuracy", 3))
    )
    return f"held-out words: loss {loss}, accuracy {accuracy}"


def fine_tuning(out: Path) -> str:
    """Accuracy on dev.tsv, beside that from scratch, of a linear model of words, and of the most
    frequent label.
    """
    best, scratch = (
        _json(out / folder / SERIES_FILE)["settings"][0]["median"] for folder in CLASSIFIERS
    )
    train, dev = (
        read_tsv(str(out / "task" / f"{split}.tsv")).examples for split in ("train", "dev")
    )
    words = make_pipeline(CountVectorizer(token_pattern=r"\w+"), LogisticRegression(max_iter=1000))
    words.fit([example.text_a for example in train], [example.label for example in train])
    labels = [example.label for example in dev]
    bag_of_words = words.score([example.text_a for example in dev], labels)
    majority = max(collections.Counter(labels).values()) / len(labels)
    return (
        f"dev accuracy {best:.3f}, from scratch {scratch:.3f} (medians of "
        f"{_json(out / CLASSIFIERS[0] / SERIES_FILE)['planned']}); bag of words "
        f"{bag_of_words:.3f}, majority {majority:.3f}"
    )


def export(out: Path) -> str:
    """Names and size of the exported models."""
    models = sorted(path.name for path in (out / "saved_models").iterdir() if path.is_dir())
    return f"{', '.join(models)}: {_megabytes(out / 'saved_models'):.0f} MB"


def serving(out: Path) -> str:
    """Largest difference of served answers from Keras."""
    difference = _json(out / "serving.json")["largest_difference"]
    return f"REST, gRPC and TF Hub agree with Keras to {difference:.1e}"


def plot(out: Path) -> None:
    """Writes curves.png: the words of the text, and the labels from both starts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    rows = read_metrics(str(out / "adaptation" / METRICS_FILE))
    for axes, metric in ((first, "masked_lm_loss"), (second, "masked_lm_accuracy")):
        _draw(axes, rows, metric, "", "C0")
        axes.set_title(f"adaptation: {metric}")
    starts = zip(CLASSIFIERS, ("shipped weights", "from scratch"), ("C0", "C1"))
    for folder, name, color in starts:
        label: str | None = name
        for run in sorted((out / folder).glob("seed-*")):
            _draw(third, read_metrics(str(run / METRICS_FILE)), "accuracy", label, color)
            label = None  # Once in the legend.
    third.set_title("fine-tuning: accuracy, each seed")
    for axes in figure.axes:
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.suptitle("Lines: training; dots: held-out data")
    figure.savefig(out / "curves.png", dpi=110)


def _draw(
    axes: Axes, rows: list[dict[str, str]], metric: str, label: str | None, color: str
) -> None:
    """Draws a metric over the steps, for training and held-out data; None: not in the legend."""
    for split, style in (("train", "-"), ("eval", "o--")):
        points = [
            (int(row["step"]), float(row[metric]))
            for row in rows
            if row["split"] == split and row[metric]
        ]
        points = [point for point in points if math.isfinite(point[1])]
        if points:
            name = "_" if label is None else f"{label} {split}".strip()
            axes.plot(*zip(*points), style, color=color, label=name, linewidth=1.1, markersize=4)
