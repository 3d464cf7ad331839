"""Do the tests notice a changed line? One mutation in each of some modules, drawn by a seed.

    python scripts/mutate.py                                  40 modules
    python scripts/mutate.py --seed=3 --count=10 --under=albert_tf/layers

A mutation flips a comparison, swaps + and -, or `and` and `or`, removes a `not`, adds one to a
number, or returns None, or True instead of False. It is made in a copy of the working tree, and
judged by the test files of the module's name, tests/<path>/<module>_test.py and
tests/<path>/<module>/*_test.py, and if those pass, or there are none, by up to six others: those of
what imports the module, of what imports that, and so on. Survivors are listed; the exit code is 1
when fewer than nine in ten are caught.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import os
import random
import runpy
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("albert_tf", "data_pipeline", "export")
MIN_STATEMENTS, SECONDS = 15, 300  # Of a module; for a file of tests.
FURTHER = 6  # Files of tests.
PAIRS = [
    *[(ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)],
    *[(ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.And, ast.Or)],
]
SWAPPED = {**dict(PAIRS), **{other: one for one, other in PAIRS}}


def mutate(source: str, choice: random.Random) -> tuple[int, str, str]:
    """The number of a line, what stood and stands there, and the source with that mutation."""
    tree = ast.parse(source)
    changes = list(_changes(tree))
    line = choice.choice(sorted({node.lineno for node, _ in changes}))
    node, change = choice.choice([each for each in changes if each[0].lineno == line])
    before = ast.unparse(node)
    change()
    return line, f"{before}  ->  {ast.unparse(node)}", ast.unparse(tree) + "\n"


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, Callable[[], None]]]:
    """What can be changed below a node, and how; not annotations, assertions, errors, texts."""
    if isinstance(node, (ast.Assert, ast.Raise, ast.JoinedStr)):
        return
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        yield node, lambda: node.ops.__setitem__(0, SWAPPED[type(node.ops[0])]())
    elif isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)) and type(node.op) in SWAPPED:
        yield node, lambda: setattr(node, "op", SWAPPED[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield node, lambda: setattr(node, "value", node.value + 1)
    elif isinstance(node, ast.Return) and ast.unparse(node).endswith((" True", " False")):
        # None would be as good as False.
        yield node, lambda: setattr(node, "value", ast.UnaryOp(ast.Not(), node.value))
    elif isinstance(node, ast.Return) and ast.unparse(node.value or ast.Constant(None)) != "None":
        yield node, lambda: setattr(node, "value", ast.Constant(None))
    annotations = getattr(node, "annotation", None), getattr(node, "returns", None)
    for child in ast.iter_child_nodes(node):
        if child not in annotations:
            yield from _changes(child)


def public_modules(root: Path, under: str) -> list[Path]:
    """Modules below a folder that are neither private nor programs nor very short."""
    paths = sorted(path for package in PACKAGES for path in (root / package).rglob("[!_]*.py"))
    return [path for path in paths if path.is_relative_to(root / under) and _is_subject(path)]


def _is_subject(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    size = sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text)))
    return size >= MIN_STATEMENTS and 'if __name__ == "__main__":' not in text


def tests_of(path: Path, root: Path) -> list[Path]:
    """The test files named after a module."""
    place = (root / "tests" / path.relative_to(root)).with_suffix("")
    return [*place.parent.glob(f"{place.name}_test.py"), *sorted(place.glob("*_test.py"))]


def judges(path: Path, line: int, root: Path) -> list[Path]:
    """The test files named after a module, then up to FURTHER others: those of what imports it,
    first with the name of what the line defines, and the nearest; of what imports that, and so on.
    """
    files = sorted(file for name in (*PACKAGES, "tests") for file in (root / name).rglob("*.py"))
    climbed, found = [path], dict.fromkeys(tests_of(path, root))
    most = len(found) + FURTHER
    for each in climbed:  # It grows.
        place, above = each.relative_to(root).with_suffix(""), {*each.relative_to(root).parents}
        nodes = ast.parse(each.read_text(encoding="utf-8")).body
        words = [f"{place.parts[0]}.{getattr(node, 'name', '')}" for node in nodes]
        names = {".".join(place.parts), *words}
        if each is path:
            changed = words[sum(node.lineno <= line for node in nodes) - 1]
        users = [file for file in files if names & _imports(file)]
        tests = [file for file in users if file.name.endswith("_test.py")]
        near = {test: len(above & {*test.relative_to(root / "tests").parents}) for test in tests}
        tests.sort(key=lambda test: (changed not in _imports(test), -near[test]))
        found |= dict.fromkeys(tests_of(each, root) + tests)
        climbed += [user for user in users if user not in climbed and len(found) < most]
    return list(found)[:most]


@functools.cache
def _imports(path: Path) -> set[str]:
    """`from a.b import c` -> "a.b", "a.b.c", "a.c": packages give on what their modules define."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    found = [(node.module, node.names) for node in nodes if isinstance(node, ast.ImportFrom)]
    pairs = [(str(module), f".{each.name}") for module, names in found for each in names]
    above = {module.partition(".")[0] + name for module, name in pairs}
    return above | {module + end for module, name in pairs for end in ("", name)}


def passes(test: Path, root: Path, *options: str) -> bool:
    """Whether a test file passes in time, in a process that is forked with TensorFlow imported."""
    # Not by `multiprocessing`, in whose processes the project leaves warnings to the parent.
    if not (pid := os.fork()):
        signal.alarm(SECONDS)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.chdir(root)
        os._exit(pytest.main(["-x", "-q", *options, str(test)]))
    return os.waitpid(pid, 0)[1] == 0


def notices(test: Path, path: Path, mutated: str, root: Path) -> bool:
    """Whether a file of tests fails with the mutation, and what failed passes without it."""
    source = path.read_text(encoding="utf-8")
    path.write_text(mutated, encoding="utf-8")
    passed = passes(test, root, "--cache-clear")
    path.write_text(source, encoding="utf-8")
    return not passed and passes(test, root, "--last-failed")


def try_mutation(path: Path, root: Path, seed: int) -> str:
    """Mutates a module, runs tests until one notices, and prints and returns the verdict."""
    source, name = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
    line, change, mutated = mutate(source, random.Random(f"{seed} {name}"))
    tests = judges(path, line, root)
    test = next((test for test in tests if notices(test, path, mutated, root)), None)
    row = f"{'caught' if test else 'SURVIVED':<9} {f'{name}:{line}':<58} {change}"
    if test and test not in tests_of(path, root):
        row += f"  ({test.relative_to(root).as_posix()})"
    print(row, flush=True)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40, help="how many modules")
    parser.add_argument("--under", default=".", help="only modules in this folder")
    arguments = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    runpy.run_path(str(ROOT / "albert_tf" / "keras_choice.py"))["prefer_keras_2"]()
    # What was compiled of a file of the same size and second would be taken for it.
    os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
    importlib.import_module("tensorflow")
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        root = Path(folder).resolve()
        unneeded = shutil.ignore_patterns(".*", "__pycache__", "demo_out*")
        shutil.copytree(ROOT, root, ignore=unneeded, dirs_exist_ok=True)
        modules = public_modules(root, arguments.under)
        random.Random(arguments.seed).shuffle(modules)
        modules = sorted(modules[: arguments.count])
        rows = [try_mutation(path, root, arguments.seed) for path in modules]
    missed = [row for row in rows if not row.startswith("caught")]
    print(f"{len(rows) - len(missed)} of {len(rows)} caught", *missed, sep="\n")
    return int(len(missed) > 0.1 * len(rows))


if __name__ == "__main__":
    sys.exit(main())
