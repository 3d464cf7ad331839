"""Docstrings: what user code imports names each of its many arguments, its result and errors.

The rest of the code says what names and types do not tell, which no test can judge. Arguments that
mean the same in all layers and models are described once, under "Notation" in CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from albert_tf.keras_choice import TF_VERSION

ROOT = Path(__file__).parents[1]
PACKAGES = ("albert_tf", "data_pipeline", "export")
KERAS_3 = "albert_tf.keras3"  # It can be imported where Keras 3 is.
# The modules that user code imports from; others may move.
HOMES = (
    "albert_tf",
    "albert_tf.finetuning",
    "albert_tf.pretraining",
    "albert_tf.training",
    "data_pipeline",
    *([KERAS_3] if TF_VERSION >= (2, 16) else []),
)
MANY_ARGUMENTS = 4
MODEL_FILES = {
    path for folder in ("layers", "models") for path in (ROOT / "albert_tf" / folder).glob("*.py")
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions(body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator:
    """(function, class that it is a method of or None) of a module; what is private is left out."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, node)
        elif isinstance(node, Function) and (
            not node.name.startswith("_") or (owner and node.name == "__init__")
        ):
            yield node, owner


def argument_names(function: Function, is_method: bool) -> list[str]:
    """The names of all arguments but self and cls: f(a, *b, c, **d) -> [a, b, c, d]."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    if is_method and not any(ast.unparse(d) == "staticmethod" for d in function.decorator_list):
        named = named[1:]
    named += [arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [argument.arg for argument in named if argument]


def raises_user_error(function: Function) -> bool:
    """Whether the function's own body raises one."""
    raised = [node.exc for node in ast.walk(function) if isinstance(node, ast.Raise)]
    return any(isinstance(e, ast.Call) and ast.unparse(e.func) == "UserError" for e in raised)


def modules(package: str) -> Iterator[tuple[Path, list[ast.stmt]]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8")).body


def shared_arguments() -> set[str]:
    """The arguments of layers and models that CONTRIBUTING.md describes for all of them."""
    notation = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Notation")[2]
    return set(re.findall(r"^- `(\w+)`:", notation.partition("\n## ")[0], re.M))


def lacking(
    function: Function, owner: ast.ClassDef | None, known: set[str] = frozenset()
) -> list[str]:
    """Sections and arguments that a docstring lacks; a class's own counts for its __init__."""
    names = [name for name in argument_names(function, owner is not None) if name not in known]
    docstring = ast.get_docstring(function) or ""
    if len(names) < MANY_ARGUMENTS:
        return []
    if owner is not None and function.name == "__init__":
        docstring += "\n" + (ast.get_docstring(owner) or "")
    _, section, arguments = docstring.partition("Args:\n")
    wanted = [] if section else ["Args:"]
    described = {
        name.strip()
        for line in arguments.splitlines()
        for name in line.partition(":")[0].split(",")
    }
    wanted += [name for name in names if section and name not in described]
    returns = ast.unparse(function.returns) if function.returns else "None"
    if returns not in ("None", "NoReturn") and not any(
        f"{title}:\n" in docstring for title in ("Returns", "Yields")
    ):
        wanted.append("Returns:")
    if raises_user_error(function) and "Raises:\n" not in docstring:
        wanted.append("Raises:")
    return wanted


def names_for_users() -> set[str]:
    return {name for home in HOMES for name in importlib.import_module(home).__all__}


def test_functions_for_users_say_what_they_take_give_and_raise():
    users, missing, checked = names_for_users(), {}, 0
    for package in PACKAGES:
        for path, body in modules(package):
            known = shared_arguments() if path in MODEL_FILES else set()
            for function, owner in public_functions(body):
                # Methods are described where the base class has them first.
                is_method = owner is not None and function.name != "__init__"
                if is_method or (owner or function).name not in users:
                    continue
                checked += 1
                if wanted := lacking(function, owner, known):
                    name = f"{owner.name}.{function.name}" if owner else function.name
                    missing[f"{path.relative_to(ROOT)}: {name}"] = wanted
    assert checked > 30
    assert not missing, "\n".join(f"{k}: {v}" for k, v in missing.items())


def test_shared_arguments_are_those_of_layers_and_models():
    names = {
        name
        for path in MODEL_FILES
        for function, owner in public_functions(ast.parse(path.read_text("utf-8")).body)
        for name in argument_names(function, owner is not None)
    }
    assert {"config", "training", "seed", "positions"} <= shared_arguments() <= names


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_the_thing_that_they_describe(package):
    """`The lengths at which texts are cut`, not `Where texts are cut`."""
    riddles = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | Function):
                docstring = ast.get_docstring(node) or ""
                if re.match(r"(What|How|Where|Which|Why|When|Something|The things)\b", docstring):
                    riddles[f"{path.relative_to(ROOT)}:{node.body[0].lineno}"] = docstring
    assert not riddles
