r"""Trains the paper's tables at a small scale, run by run; or prints the commands for a TPU.

    python -m experiments.paper --table=depth --corpus='text/*.train.jsonl' \
        --heldout='text/*.heldout.jsonl' --output_dir=work

A finished run is a row in --rows and is not repeated; an interrupted one is resumed.
"""

from __future__ import annotations

from pathlib import Path

from albert_tf.training.settings import PRECISIONS
from benchmarks.tables import chosen
from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import define, read
from data_pipeline.errors import UserError
from experiments.paper import report, speed
from experiments.paper.cells import Lab, Run, script, with_parents
from experiments.paper.rows import plan, run_all
from experiments.paper.tables import TABLES
from experiments.tables import markdown_table, read_rows, replace_table

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("What is made")
    flags.DEFINE_enum("table", None, [*TABLES, "speed"], "Table of the paper.", required=True)
    flags.DEFINE_string("cell", "", "Regular expression for rows of the table, such as ^4.")
    flags.DEFINE_integer("seeds", 3, "Runs of each row, paired by their seeds.", 1, 100)
    flags.DEFINE_bool("dry_run", False, "Print the runs that are left, and what they cost.")
    flags.DEFINE_bool("report", False, "Run nothing; only make the table of the finished rows.")
    flags.DEFINE_enum("precision", "float32", PRECISIONS, "Precision for --table=speed.")
    define(Lab, "Runs")
    flags.group("Results")
    flags.DEFINE_string("rows", "docs/paper/runs.csv", "File with a row for each finished run.")
    flags.DEFINE_string("document", None, "Document whose table of this name is replaced.")
    flags.DEFINE_string(
        "picture", None, "PNG file for the figures of all runs; by default OUTPUT_DIR/TABLE.png."
    )


def main() -> None:
    rows = Path(FLAGS.rows)
    if FLAGS.table == "speed":
        if FLAGS.dry_run or FLAGS.report:
            raise UserError(
                "--table=speed has no rows in a file. Leave out --dry_run and --report."
            )
        publish(speed.table_rows(Path(FLAGS.output_dir) / "speed", FLAGS.precision))
        return
    if not FLAGS.report:
        runs = chosen_runs()
        if FLAGS.shape == "paper":
            print("\n".join(script(runs)))
            return
        if FLAGS.dry_run:
            print(plan(runs, read_rows(rows)))
            return
        run_all(runs, rows)
    found = report.rows_of(FLAGS.table, read_rows(rows))
    if not found:
        raise UserError(f"--rows={rows} has no row of --table={FLAGS.table}. Run its cells first.")
    publish(list(report.table_rows(TABLES[FLAGS.table], found)))
    minutes = {row["key"]: float(row["minutes"]) for row in found}
    print(f"{len(minutes)} runs, {sum(minutes.values()) / 60:.1f} hours")
    picture = FLAGS.picture or f"{FLAGS.output_dir}/{FLAGS.table}.png"
    report.draw(TABLES[FLAGS.table], found, Path(picture))


def chosen_runs() -> list[Run]:
    """The runs that flags select: all rows with the first seed, then with the second, and so on."""
    table, lab = TABLES[FLAGS.table], read(Lab)
    cells = {cell.name: cell for cell in (table.small if lab.is_small else table.paper)}
    if not cells:
        raise UserError(f"--table={FLAGS.table} is none of the paper's tables. Use --shape=small.")
    wanted = chosen("cell", FLAGS.cell, cells).values()
    return with_parents(
        [Run(lab, FLAGS.table, cell, seed) for seed in range(FLAGS.seeds) for cell in wanted]
    )


def publish(lines: list[dict[str, str]]) -> None:
    """Prints a table, and writes it into --document."""
    table = markdown_table(lines)
    print(f"\n{table}")
    if FLAGS.document:
        replace_table(Path(FLAGS.document), FLAGS.table, table)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
