"""runs.csv: one row for each finished run, so that it is not repeated."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.paper.cells import Run
from experiments.programs import spent
from experiments.tables import append_row, read_rows

_GUESSED_FLOPS = 6e12  # Per minute; used until there is a row to measure the speed.
Rows = list[dict[str, str]]


def pairs_of(text: str) -> dict[str, str]:
    """ "a=1; b=2" -> {"a": "1", "b": "2"}, for the columns figures and settings."""
    return {name: value for name, _, value in (pair.partition("=") for pair in text.split("; "))}


def run_all(runs: Sequence[Run], path: Path) -> None:
    """Runs those that have no row, and appends their rows; prints progress with an estimate."""
    rows = read_rows(path)
    done = {row["key"]: row for row in rows}
    listed = {(row["table"], row["cell"], row["key"]) for row in rows}
    for run in runs:  # A run of another table with the same settings also counts for this table.
        names = {"table": run.table_name, "cell": run.cell.name}
        if run.key in done and (*names.values(), run.key) not in listed:
            append_row(path, {**done[run.key], **names})
    left = [run for run in runs if run.key not in done]
    print(plan(runs, rows).splitlines()[-1], flush=True)
    for number, run in enumerate(left, 1):
        print(f"[{number}/{len(left)}] {run.name}, {run.folder}", flush=True)
        began = time.monotonic()
        run.make()
        row = {
            "table": run.table_name,
            "cell": run.cell.name,
            "seed": str(run.seed),
            "key": run.key,
            **spent(began),
            "figures": "; ".join(f"{name}={value:.5g}" for name, value in run.figures().items()),
            "settings": "; ".join(f"{name}={value}" for name, value in run.settings.items()),
        }
        append_row(path, row)
        print(f"  {row['figures']}\n{plan(runs, read_rows(path)).splitlines()[-1]}", flush=True)


def plan(runs: Sequence[Run], rows: Rows) -> str:
    """Lines with the tokens and hours of each run, and the total that remains, estimated from the
    speed of finished runs.
    """
    minutes = {row["key"]: float(row["minutes"]) for row in rows}
    rates = [run.flops / max(minutes[run.key], 0.1) for run in runs if run.key in minutes]
    rate = statistics.median(rates) if rates else _GUESSED_FLOPS
    left = {
        run.key: run.flags.get("max_minutes") or run.flops / rate
        for run in runs
        if run.key not in minutes
    }
    lines = []
    for run in runs:
        state = f"about {left[run.key]:.0f} min" if run.key in left else "done"
        lines.append(f"{run.key}  {run.name:<48} {run.flops:.1e} operations  {state}")
    hours = sum(left.values()) / 60
    lines.append(f"{len(left)} of {len(runs)} runs are left, about {hours:.1f} hours.")
    return "\n".join(lines)
