"""Reports the demonstration's results: a table of steps, a table of classifiers, and their curves.

python -m demo.report --demo_dir=demo_out
"""

from __future__ import annotations

import collections
import json
import math
import statistics
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from albert_tf.finetuning.runs.series import SERIES_FILE
from albert_tf.training.report.metrics_file import METRICS_FILE, read_metrics
from data_pipeline.command_line import flags, run_binary
from data_pipeline.finetuning.tsv import read_tsv
from data_pipeline.records.record_folder import read_manifest

FLAGS = flags.FLAGS

TICKETS = Path(__file__).parent / "tickets"
STARTS = {"classifier": "from the weights", "classifier_from_scratch": "from scratch"}
# Baselines with bags of words or characters. Both were chosen by cross-validation on train.tsv.
BAGS = {
    "words": {"token_pattern": r"\w+"},
    "character 2-5-grams": {"analyzer": "char", "ngram_range": (2, 5)},
}


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Demonstration")
    flags.DEFINE_string("demo_dir", "demo_out", "Output folder of the demonstration.")


def main() -> None:
    """Prints the tables and writes curves.png."""
    out = Path(FLAGS.demo_dir)
    print_steps(out)
    print_accuracies(accuracies(out, TICKETS))
    plot(out)
    print(f"\nCurves: {out}/curves.png")


def print_steps(out: Path) -> None:
    """Prints the steps with their seconds and results."""
    # Name, prefixes of its notes in OUTPUT/finished, and result.
    steps = (
        ("text", ("corpus",), corpus(out)),
        ("records", ("records",), records(out)),
        ("pre-training", ("pretraining",), pretraining(out)),
        ("fine-tuning", ("finetuning", "from_scratch"), "two starts, see below"),
        ("export", ("export",), exports(out)),
        ("answers", ("answers",), answers(out)),
    )
    total = 0
    print(f"\n{'step':<13} {'seconds':>7}  result")
    for name, prefixes, result in steps:
        notes = [note for note in (out / "finished").iterdir() if note.name.startswith(prefixes)]
        # scripts/speedrun.sh writes the command, then its duration in seconds.
        seconds = sum(int(note.read_text().splitlines()[1]) for note in notes)
        total += seconds
        print(f"{name:<13} {seconds:7}  {result}")
    print(f"{'total':<13} {total:7}")


def corpus(out: Path) -> str:
    """Size of the text."""
    texts = [(out / "corpus" / f"{split}.txt").read_bytes() for split in ("train", "heldout")]
    documents = [sum(1 for document in text.split(b"\n\n") if document.strip()) for text in texts]
    return f"{len(texts[0]) / 1e6:.2f} MB, {documents[0]} documents, {documents[1]} held out"


def records(out: Path) -> str:
    """Numbers of records."""
    train, heldout = (read_manifest(str(out / "records" / split)) for split in ("train", "heldout"))
    length = train["max_seq_length"]
    return f"{train['num_records']} records of {length} tokens, {heldout['num_records']} held out"


def pretraining(out: Path) -> str:
    """Held-out masked-LM figures before and after training."""
    rows = read_metrics(str(out / "pretraining" / METRICS_FILE))
    before, *_, after = [row for row in rows if row["split"] == "eval"]
    loss, accuracy = (
        " to ".join(f"{float(row[name]):.{digits}f}" for row in (before, after))
        for name, digits in (("masked_lm_loss", 2), ("masked_lm_accuracy", 3))
    )
    return f"held-out words: loss {loss}, accuracy {accuracy}"


def exports(out: Path) -> str:
    """Names and sizes of the exported models."""
    folder = out / "saved_models"
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return f"{', '.join(names)}: {size / 1e6:.0f} MB"


def answers(out: Path) -> str:
    """Largest difference of served answers from Keras."""
    difference = json.loads((out / "answers.json").read_text())["largest_difference"]
    return f"REST, gRPC and TF Hub agree with Keras to {difference:.1e}"


def accuracies(out: Path, tickets: Path) -> dict[str, str]:
    """Accuracies on dev.tsv, as text by name: the network from both starts, logistic regression on
    words and on character n-grams, and always predicting the most frequent label.
    """
    found = {}
    for folder, name in STARTS.items():
        runs = json.loads((out / folder / SERIES_FILE).read_text())["runs"]
        best = sorted(run["best"] for run in runs)
        found[name] = (
            f"{statistics.median(best):.3f} (median of {len(best)} seeds, "
            f"{best[0]:.3f} to {best[-1]:.3f})"
        )
    train, dev = (read_tsv(str(tickets / f"{split}.tsv")).examples for split in ("train", "dev"))
    labels = [example.label for example in dev]
    for name, parts in BAGS.items():
        bag = make_pipeline(TfidfVectorizer(**parts), LogisticRegression(C=10, max_iter=1000))
        bag.fit([example.text_a for example in train], [example.label for example in train])
        found[name] = f"{bag.score([example.text_a for example in dev], labels):.3f}"
    found["chance"] = f"{max(collections.Counter(labels).values()) / len(labels):.3f}"
    return found


def print_accuracies(found: dict[str, str]) -> None:
    """Prints the table of `accuracies`."""
    print("\nintent of a message (dev.tsv of demo/tickets): accuracy")
    for name, accuracy in found.items():
        print(f"  {name:<20} {accuracy}")


def plot(out: Path) -> None:
    """Writes curves.png: masked LM on the text, and the intents from both starts."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    rows = read_metrics(str(out / "pretraining" / METRICS_FILE))
    for axes, metric in ((first, "masked_lm_loss"), (second, "masked_lm_accuracy")):
        _draw(axes, rows, metric, "", "C0")
        axes.set_title(f"pre-training: {metric}")
    for (folder, name), color in zip(STARTS.items(), ("C0", "C1")):
        for number, run in enumerate(sorted((out / folder).glob("seed-*"))):
            label = "_" if number else name  # Matplotlib's legend leaves out names with "_" first.
            _draw(third, read_metrics(str(run / METRICS_FILE)), "accuracy", label, color)
    third.set_title("fine-tuning: accuracy, each seed")
    for axes in figure.axes:
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.suptitle("Lines: training; dots: held-out data")
    figure.savefig(out / "curves.png", dpi=110)


def _draw(axes: Axes, rows: list[dict[str, str]], metric: str, label: str, color: str) -> None:
    """Plots a metric against steps, for training and held-out data."""
    for split, style in (("train", "-"), ("eval", "o--")):
        points = [
            (int(row["step"]), float(row[metric]))
            for row in rows
            if row["split"] == split and row[metric] and math.isfinite(float(row[metric]))
        ]
        if points:
            name = f"{label} {split}".strip()
            axes.plot(*zip(*points), style, color=color, label=name, linewidth=1.1, markersize=4)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
