"""Docstrings: those of functions with many arguments name each of them, their result and errors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("albert_tf", "data_pipeline", "export")
MANY_ARGUMENTS = 4

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


def lacking(function: Function, owner: ast.ClassDef | None) -> list[str]:
    """Sections and arguments that the docstring lacks; that of a class counts for its __init__."""
    names = argument_names(function, owner is not None)
    if len(names) < MANY_ARGUMENTS:
        return []
    docstring = ast.get_docstring(function) or ""
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


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_of_many_arguments_say_what_they_take_give_and_raise(package):
    missing = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        for function, owner in public_functions(ast.parse(path.read_text("utf-8")).body):
            if wanted := lacking(function, owner):
                name = f"{owner.name}.{function.name}" if owner else function.name
                missing[f"{path.relative_to(ROOT)}: {name}"] = wanted
    assert not missing, "\n".join(f"{k}: {v}" for k, v in missing.items())
