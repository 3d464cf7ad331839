"""Draws a chart of the committed figures, for docs/benchmarks.md.

    python -m benchmarks.chart --data=docs/benchmarks --output=docs/benchmarks/chart.svg

It shows encoder.csv and pretraining_data.csv of --data, as benchmarks.encoder and
benchmarks.pretraining_data write them. The background is transparent and the letters are gray, so
that the chart can be read on white and on black pages.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmarks.tables import read_csv
from data_pipeline.command_line import flags, run_binary

FLAGS = flags.FLAGS

LIBRARIES = {  # Name in encoder.csv -> name in the chart.
    "ours, packed": "this project",
    "Hugging Face TFAlbert": "Hugging Face, TensorFlow",
    "KerasHub": "KerasHub",
    "Model Garden": "Model Garden",
    "Hugging Face PyTorch": "Hugging Face, PyTorch",
}
PROGRAMS = {  # Name in pretraining_data.csv -> name in the chart.
    "ours, dynamic": "this project, dynamic",
    "ours, static, 1 copy": "this project, static",
    "SentencePiece alone": "SentencePiece alone",
    "Model Garden, 1 copy": "Model Garden, static",
}
PRECISIONS = ("float32", "bfloat16")
LETTERS = "#76797f"  # Contrast ratio above 4 to 1 with white and with GitHub's black.
OURS, OTHERS = ("#6ea8fe", "#1f6feb"), ("#b6bbc2", "#878d96")  # One color per precision.


@dataclasses.dataclass(frozen=True)
class Panel:
    """A bar chart.

    Attributes:
      title: what is compared.
      unit: the unit of all figures.
      bars: name of a row -> one figure per precision, or a single one; None if there is none.
      digits: digits after the decimal point.
    """

    title: str
    unit: str
    bars: dict[str, tuple[float | None, ...]]
    digits: int = 0


def library_bars(
    rows: list[dict[str, str]], which: str, case: str, column: str
) -> dict[str, tuple[float | None, ...]]:
    """The bars for one pass, case and column of encoder.csv; one row per library."""
    found = {
        (row["library"], row["precision"]): float(row[column])
        for row in rows
        if (row["pass"], row["case"]) == (which, case)
    }
    return {
        shown: tuple(found.get((library, precision)) for precision in PRECISIONS)
        for library, shown in LIBRARIES.items()
    }


def panels_of(folder: Path) -> list[Panel]:
    """The six panels of the chart, row by row."""
    rows = read_csv(folder / "encoder.csv")
    made = {row["case"]: (float(row["MB/s"]),) for row in read_csv(folder / "pretraining_data.csv")}
    records = {shown: made[name] for name, shown in PROGRAMS.items()}

    def rates(title: str, which: str, case: str) -> Panel:
        bars = library_bars(rows, which, case, "real_tokens_per_s")
        return Panel(title, "tokens a second, without padding", bars)

    memory = library_bars(rows, "training", "8x128", "peak_mb")
    return [
        rates("Forward pass, 8 x 128 tokens", "forward", "8x128"),
        rates("Forward pass, 64 short sentences", "forward", "64 SST-2-like"),
        Panel("Making records of text", "MB a second, one process", records, digits=1),
        rates("Training step, 8 x 128 tokens", "training", "8x128"),
        rates("Training step, 64 short sentences", "training", "64 SST-2-like"),
        Panel("Memory of a training step", "8 x 128 tokens, peak MiB, less is better", memory),
    ]


def draw(axes, panel: Panel) -> None:
    """Draws a panel: bars from top to bottom, each with its figure at the end."""
    largest = max(value for values in panel.bars.values() for value in values if value)
    for place, (name, values) in enumerate(panel.bars.items()):
        colors = OURS if name.startswith("this project") else OTHERS
        for number, value in enumerate(values):
            at = place + 0.4 * (number - (len(values) - 1) / 2)
            axes.barh(at, value or 0, 0.37, color=colors[number - len(values)])
            text = "no figure" if value is None else f"{value:,.{panel.digits}f}"
            axes.text((value or 0) + largest / 50, at, text, va="center", fontsize=8)
    axes.set_title(panel.title, fontsize=10, loc="left", pad=20, weight="bold")
    axes.text(0, 1.04, panel.unit, transform=axes.transAxes, fontsize=8.5)
    axes.set_xlim(0, 1.18 * largest)
    axes.set_ylim(len(panel.bars) - 0.5, -0.5)
    axes.set_yticks(range(len(panel.bars)), panel.bars, fontsize=9)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def chart(panels: list[Panel]) -> Figure:
    """The chart of all panels, three in a row; the middle one shares the labels of the left one."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    figure.get_layout_engine().set(wspace=0.06, hspace=0.08)
    for place, (axes, panel) in enumerate(zip(figure.subplots(2, 3).flat, panels)):
        draw(axes, panel)
        if place % 3 == 1:
            axes.set_yticks([])
    figure.legend(
        handles=[Patch(color=color, label=name) for name, color in zip(PRECISIONS, OTHERS)],
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=9,
    )
    return figure


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Chart")
    flags.DEFINE_string("data", "docs/benchmarks", "Folder of the CSV files.")
    flags.DEFINE_string("output", "docs/benchmarks/chart.svg", "File of the chart: .svg or .png.")


def main() -> None:
    settings = {
        "svg.fonttype": "none",  # Keeps text as text, which is smaller and searchable.
        "svg.hashsalt": "benchmarks",  # Makes the file depend only on the figures.
        "savefig.transparent": True,
        **dict.fromkeys(("text.color", "xtick.color", "ytick.color"), LETTERS),
    }
    with matplotlib.rc_context(settings):
        metadata = {"Date": None} if FLAGS.output.endswith(".svg") else {}
        chart(panels_of(Path(FLAGS.data))).savefig(FLAGS.output, metadata=metadata, dpi=110)
    print(f"Wrote {FLAGS.output}")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
