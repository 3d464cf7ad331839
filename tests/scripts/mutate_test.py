"""The program that changes lines to see whether tests notice: what it changes, and what not."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "mutate.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("mutate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("x = a < b", "x = a >= b"),
        ("x = a == b", "x = a != b"),
        ("x = a not in b", "x = a in b"),
        ("x = a + b", "x = a - b"),
        ("x -= a", "x += a"),
        ("x = a and b", "x = a or b"),
        ("x = 3", "x = 4"),
        ("x = 0.5", "x = 1.5"),
        ("if not a: b", "if not not a:\n    b"),
        ("def f(): return a", "def f():\n    return None"),
    ],
)
def test_changes_one_place(script, line, after):
    number, _, source = script.mutate(line, random.Random(0))
    assert (number, source) == (1, after + "\n")


@pytest.mark.parametrize(
    "line",
    [
        '"""A docstring of 3 lines."""',
        "x: list[3] = a",
        "def f(x: g(1)) -> g(2): pass",
        'raise ValueError(f"{a + 1} is not 2")',
        'x = f"{a + 1:.3f}"',
        "x = a * b",
        "def f(): return",
        "x = True",
    ],
)
def test_leaves_annotations_errors_and_texts_alone(script, line):
    with pytest.raises(IndexError):
        script.mutate(line, random.Random(0))


def test_judges_by_the_tests_named_after_a_module(script, tmp_path):
    for name in ("p/m_test.py", "p/m/more_test.py", "p/other_test.py"):
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).touch()
    found = script.tests_of(tmp_path / "p" / "m.py", tmp_path)
    assert [path.relative_to(tmp_path / "tests").as_posix() for path in found] == [
        "p/m_test.py",
        "p/m/more_test.py",
    ]
    assert script.tests_of(tmp_path / "p" / "n.py", tmp_path) == []


ROW = ["return", "x", "+", "x", "->", "return", "None"]


def test_a_mutation_that_tests_notice_is_caught(script, tmp_path, monkeypatch, capsys):
    module, test = tmp_path / "m.py", tmp_path / "tests" / "m_test.py"
    test.parent.mkdir()
    module.write_text("def double(x):\n    return x + x\n")
    test.touch()
    monkeypatch.setattr(script, "passes", lambda tests, root: "x + x" in module.read_text())
    row = script.try_mutation(module, tmp_path, 0)
    assert row.split() == ["caught", "m.py:2", *ROW]
    assert module.read_text() == "def double(x):\n    return x + x\n"
    monkeypatch.setattr(script, "passes", lambda tests, root: True)
    assert script.try_mutation(module, tmp_path, 0).split() == ["SURVIVED", "m.py:2", *ROW]
    test.unlink()
    assert script.try_mutation(module, tmp_path, 0).startswith("no test   m.py:2 ")
    assert capsys.readouterr().out.count("m.py:2") == 3
