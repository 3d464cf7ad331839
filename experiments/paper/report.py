"""Rows of runs.csv as a table: paper | ours | difference | 95 % interval | same direction?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure

from experiments.paper.rows import Rows, pairs_of
from experiments.paper.tables import BETTER, SAME, TABLES, WORSE, Cell, Table
from experiments.weights.intervals import t_interval

_NOISE = 0.2  # Assumed noise of the paper's figures in points; the paper gives no spread.
# Cell -> seed -> figure.
Figures = dict[str, dict[int, float]]


def rows_of(name: str, rows: Rows) -> Rows:
    """The rows of a table that are comparable with its last row."""
    costs = {cell.name: cell.cost for cell in TABLES[name].small}
    of_table = [row for row in rows if row.get("table") == name and row["cell"] in costs]

    def data(row: dict[str, str]) -> tuple[str | None, ...]:
        settings = pairs_of(row["settings"])
        texts = [text.rpartition(":")[0] for text in settings["texts"].split()]
        names = ("vocabulary", "max_seq_length", "max_minutes")
        return next(t for t in texts if t.startswith("heldout")), *map(settings.get, names)

    def time(row: dict[str, str]) -> float:
        return int(pairs_of(row["settings"])["num_train_steps"]) * costs[row["cell"]]

    return [
        row
        for row in of_table
        if data(row) == data(of_table[-1])
        and math.isclose(time(row), time(of_table[-1]), rel_tol=0.05)
    ]


def figures_by_seed(rows: Rows, figure: str) -> Figures:
    """A figure for every cell and seed; accuracies in percent."""
    found: Figures = {}
    for row in rows:
        if value := pairs_of(row["figures"]).get(figure):
            percent = 100 if figure.endswith("accuracy") else 1
            found.setdefault(row["cell"], {})[int(row["seed"])] = percent * float(value)
    return found


def table_rows(table: Table, rows: Rows) -> Iterator[dict[str, str]]:
    """The lines of a table: one for each figure, including fine-tuning scores, and each cell with
    rows.
    """
    tasks = {name for row in rows for name in pairs_of(row["figures"]) if "." in name}
    for place, figure in enumerate((*table.figures, *sorted(tasks))):
        found = figures_by_seed(rows, figure)
        for cell in table.small:
            if seeds := found.get(cell.name):
                mean = sum(seeds.values()) / len(seeds)
                in_paper = cell.paper[place] if place < len(cell.paper) else ""
                yield {
                    "row": cell.name,
                    "measured": figure,
                    f"paper ({table.printed})": str(in_paper),
                    "ours (runs)": f"{mean:.3f} ({len(seeds)})",
                    "compared with": cell.against,
                    **difference(cell, found, figure, direction(table, cell, place)),
                }


def difference(cell: Cell, found: Figures, figure: str, in_paper: str) -> dict[str, str]:
    """The paired difference over the seeds that both cells have, and the verdict."""
    ours, others = found[cell.name], found.get(cell.against, {})
    pairs = [ours[seed] - others[seed] for seed in sorted(ours.keys() & others.keys())]
    shown = f"{sum(pairs) / len(pairs):+.3f}" if pairs else ""
    interval, verdict = "", "one seed" if pairs else ""
    if len(pairs) > 1:
        low, high = t_interval(pairs)
        interval = f"{low:+.3f} to {high:+.3f}"
        verdict = judge(low, high, figure.endswith("loss"), in_paper)
    return {"difference": shown, "95 % interval": interval, "same direction?": verdict}


def direction(table: Table, cell: Cell, place: int) -> str:
    """Whether the paper's row is BETTER, WORSE or the SAME; "" if the paper does not say."""
    if not cell.against or place >= len(cell.paper):
        return ""
    if isinstance(ours := cell.paper[place], str):
        return ours
    other = next(each for each in table.small if each.name == cell.against)
    ahead = ours - float(other.paper[place])
    return SAME if abs(ahead) < _NOISE else BETTER if ahead > 0 else WORSE


def judge(low: float, high: float, is_loss: bool, in_paper: str) -> str:
    """ "yes", "no", or the reason why neither applies."""
    if low <= 0 <= high:
        return "no difference seen"
    found = BETTER if (low > 0) != is_loss else WORSE
    if not in_paper:
        return f"{found}; not compared with the paper"
    return "yes" if found == in_paper else f"no, {found}"


def draw(table: Table, rows: Rows, path: Path) -> None:
    """Draws every run as a dot and the mean of a cell as a line, a panel for each figure."""
    figure = Figure(figsize=(4 + 3 * len(table.figures), 3.2), layout="constrained")
    panels = figure.subplots(1, len(table.figures), squeeze=False)[0]
    for axes, measured in zip(panels, table.figures):
        found = figures_by_seed(rows, measured)
        names = [cell.name for cell in table.small if cell.name in found]
        for place, name in enumerate(names):
            values = list(found[name].values())
            axes.plot(values, [place] * len(values), "o", color="C0", markersize=4, alpha=0.7)
            axes.plot([sum(values) / len(values)], [place], "|", color="C1", markersize=16)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel(measured)
        axes.grid(alpha=0.3)
    figure.suptitle(table.title, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, format="png")
