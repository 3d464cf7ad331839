"""Plots the curves of a run from its metrics.csv."""

from __future__ import annotations

from albert_tf.training.report.metrics_file import read_metrics
from data_pipeline.files import atomic_files


def plot_curves(metrics_path: str, png_path: str) -> None:
    """Writes a PNG with losses (left) and accuracies (right) over steps; held-out figures are
    dotted.
    """
    # Here, because it is slow, and only the end of a run needs it.
    from matplotlib.figure import Figure

    rows = read_metrics(metrics_path)
    figure = Figure(figsize=(11, 4), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2), ("loss", "accuracy")):
        for name in [name for name in (rows[0] if rows else ()) if name.endswith(kind)]:
            for split, style in (("train", "-"), ("eval", "o:")):
                points = [
                    (int(row["step"]), float(row[name]))
                    for row in rows
                    if row["split"] == split and row[name]
                ]
                if points:
                    axes.plot(
                        *zip(*points), style, label=f"{name} ({split})", linewidth=1.2, markersize=4
                    )
        axes.set_xlabel("step")
        axes.set_ylabel(f"{kind} (nats)" if kind == "loss" else kind)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=8)
    with atomic_files.writing(png_path) as file:
        figure.savefig(file, format="png", dpi=120)
