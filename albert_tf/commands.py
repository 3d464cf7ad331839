"""The command `albert-tf`: runs every program of the project by a short name.

    albert-tf --help
    albert-tf describe --preset=albert-base-v2

The program runs as with `python -m`. Only the named program is imported.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import runpy
import sys
from pathlib import Path

from albert_tf import __version__
from data_pipeline.files.shared_files import RECIPES, shared_folder
from data_pipeline.quiet import prepare_program

# Name -> module, in the order in which a project typically uses them.
COMMANDS = {
    "train-vocabulary": "data_pipeline.train_vocabulary",
    "create-pretraining-data": "data_pipeline.create_pretraining_data",
    "inspect-records": "data_pipeline.inspect_records",
    "adopt-records": "data_pipeline.adopt_records",
    "make-starting-weights": "albert_tf.make_starting_weights",
    "pretrain": "albert_tf.run_pretraining",
    "create-finetuning-data": "albert_tf.create_finetuning_data",
    "finetune": "albert_tf.run_finetuning",
    "ensemble": "albert_tf.run_ensemble",
    "glue-submission": "albert_tf.write_glue_submission",
    "describe": "albert_tf.describe",
    "convert": "albert_tf.convert",
    "verify": "albert_tf.verify",
    "export": "export.run_export",
    "export-litert": "export.run_litert",
    "predict": "export.predict",
    "serve": "export.server",
}


def help_text() -> str:
    """The usage, the commands with their purposes, and the folder of the flag files."""
    width = max(map(len, COMMANDS))
    lines = [
        "albert-tf COMMAND --name=value ...    COMMAND --help lists its flags",
        "",
        "Commands:",
    ]
    lines += [f"  {name:<{width}}  {_summary(module)}" for name, module in COMMANDS.items()]
    if folder := shared_folder(RECIPES):
        lines += ["", f"Recipes, for --flagfile: {folder}"]
    return "\n".join(lines)


def _summary(module: str) -> str:
    """The first line of a module's docstring."""
    # Parsed, not imported: importing the module would import TensorFlow and take seconds.
    spec = importlib.util.find_spec(module)
    assert spec and spec.origin
    docstring = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
    return (docstring or "").partition("\n")[0]


def main() -> None:
    """Runs the program that the first argument names, with the other arguments."""
    name, *rest = sys.argv[1:] or ["--help"]
    if name in ("--help", "-h", "help"):
        print(help_text())
    elif name == "--version":
        print(__version__)
    elif name in COMMANDS:
        prepare_program()
        sys.argv[1:] = rest
        runpy.run_module(COMMANDS[name], run_name="__main__", alter_sys=True)
    else:
        similar = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = "".join(f" Did you mean {command}?" for command in similar)
        print(
            f"albert-tf: error: {name!r} is not a command.{hint} (albert-tf --help lists them)",
            file=sys.stderr,
        )
        sys.exit(2)
