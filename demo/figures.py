"""Key figures of the demonstration, read from the files of its stages, and its curves."""

from __future__ import annotations

import collections
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from albert_tf.finetuning.results import read_results
from albert_tf.training.report.metrics_file import read_metrics
from data_pipeline.finetuning.tsv import read_tsv
from data_pipeline.pretraining.statistics import unigram_baseline
from data_pipeline.records.record_folder import read_manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def _metrics(model_dir: Path) -> dict[str, float]:
    return _json(model_dir / "model.json")["metrics"]


def _megabytes(path: Path) -> float:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6


def corpus(out: Path) -> str:
    """Size of the corpus."""
    texts = [
        (out / "corpus" / f"{split}.txt").read_text(encoding="utf-8")
        for split in ("train", "heldout")
    ]
    documents = [sum(1 for document in text.split("\n\n") if document.strip()) for text in texts]
    return f"{len(texts[0]) / 1e6:.1f} MB, {documents[0]} documents, {documents[1]} held out"


def vocabulary(out: Path) -> str:
    """Size of the vocabulary."""
    pieces = (out / "vocabulary" / "spiece.vocab").read_text(encoding="utf-8").count("\n")
    return f"{pieces} pieces"


def records(out: Path) -> str:
    """Numbers of records."""
    train, heldout = (read_manifest(str(out / "records" / split)) for split in ("train", "heldout"))
    length = train["max_seq_length"]
    return f"{train['num_records']} records of {length} tokens, {heldout['num_records']} held out"


def pretraining(out: Path) -> str:
    """Held-out accuracies beside their baselines."""
    metrics = _metrics(out / "pretraining" / "model")
    folders = [str(out / "records" / split) for split in ("train", "heldout")]
    baseline = unigram_baseline(*map(read_manifest, folders))
    return (
        f"held-out MLM accuracy {metrics['masked_lm_accuracy']:.3f} (unigram "
        f"{baseline['accuracy']:.3f}), SOP accuracy {metrics['sentence_order_accuracy']:.3f} "
        "(chance 0.5)"
    )


def fine_tuning(out: Path) -> str:
    """Accuracy on dev.tsv, beside that from scratch and that of the most frequent label."""
    best, scratch = (
        read_results(str(out / folder))[0].best.metrics["accuracy"]
        for folder in ("classifier", "classifier_from_scratch")
    )
    labels = [example.label for example in read_tsv(str(out / "task" / "dev.tsv")).examples]
    majority = max(collections.Counter(labels).values()) / len(labels)
    return f"dev accuracy {best:.3f} (from scratch {scratch:.3f}, majority {majority:.3f})"


def export(out: Path) -> str:
    """Names and size of the exported models."""
    models = sorted(path.name for path in (out / "saved_models").iterdir() if path.is_dir())
    return f"{', '.join(models)}: {_megabytes(out / 'saved_models'):.0f} MB"


def serving(out: Path) -> str:
    """Largest difference of served answers from Keras."""
    difference = _json(out / "serving.json")["largest_difference"]
    return f"REST, gRPC and TF Hub agree with Keras to {difference:.1e}"


def plot(out: Path) -> None:
    """Writes curves.png: losses and accuracies of pre-training and of both fine-tuning runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7), layout="constrained")
    panels = figure.subplots(2, 2).flat
    steps = _json(out / "pretraining" / "flags.json")["num_train_steps"]
    figure.suptitle(f"Pre-training ({steps} steps) and fine-tuning; dots: held-out data")
    runs = {
        "pretraining": "",
        "classifier": "pre-trained",
        "classifier_from_scratch": "from scratch",
    }
    for axes, (folder, metric) in zip(
        panels,
        [
            ("pretraining", "masked_lm_loss"),
            ("pretraining", "masked_lm_accuracy"),
            ("pretraining", "sentence_order_accuracy"),
            ("classifier", "accuracy"),
        ],
    ):
        for run in [name for name in runs if name.startswith(folder)]:
            _draw(axes, read_metrics(str(out / run / "metrics.csv")), metric, runs[run])
        axes.set_title(f"{folder}: {metric}")
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(out / "curves.png", dpi=110)


def _draw(axes: Axes, rows: list[dict[str, str]], metric: str, label: str) -> None:
    """Draws a metric over the steps, for training and held-out data."""
    for split, style in (("train", "-"), ("eval", "o--")):
        points = [
            (int(row["step"]), float(row[metric]))
            for row in rows
            if row["split"] == split and row[metric]
        ]
        points = [point for point in points if math.isfinite(point[1])]
        if points:
            axes.plot(
                *zip(*points), style, label=f"{label} {split}".strip(), linewidth=1.1, markersize=4
            )
