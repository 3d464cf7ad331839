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
        "assert a and b",
        "x = True",
    ],
)
def test_leaves_annotations_assertions_errors_and_texts_alone(script, line):
    with pytest.raises(IndexError):
        script.mutate(line, random.Random(0))


def test_judges_by_the_tests_of_its_name_then_by_those_of_what_imports_it(script, tmp_path):
    files = {
        "export/m.py": "def e(): pass\ndef f(): pass\nx = 1\n",
        "export/user.py": "def g():\n    from export.m import f",
        "export/above.py": "from export import user",
        "tests/export/m_test.py": "",
        "tests/export/m/more_test.py": "",
        "tests/export/near_test.py": "from export.m import e",
        "tests/far_test.py": "from export import f",  # The package gives it on.
        "tests/export/other_test.py": "from export.other import k",
        "tests/a_test.py": "from export import m",
        "tests/export/user_test.py": "",
        "tests/above_test.py": "from export.above import h",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = script.judges(tmp_path / "export" / "m.py", 2, tmp_path)
    assert script.judges(tmp_path / "export" / "m.py", 3, tmp_path)[2].name == "near_test.py"
    assert [path.relative_to(tmp_path / "tests").as_posix() for path in found] == [
        *("export/m_test.py", "export/m/more_test.py", "far_test.py", "export/near_test.py"),
        *("a_test.py", "export/user_test.py", "above_test.py"),
    ]


ROW = ["return", "x", "+", "x", "->", "return", "None"]


def test_a_mutation_that_tests_notice_is_caught(script, tmp_path, monkeypatch, capsys):
    module, test = tmp_path / "m.py", tmp_path / "tests" / "m_test.py"
    further = tmp_path / "tests" / "a_test.py"
    test.parent.mkdir()
    source = "def double(x):\n    return x + x\n"
    module.write_text(source)
    test.touch()
    further.write_text("from m import double")

    def verdict(passes) -> list[str]:
        monkeypatch.setattr(script, "passes", lambda test, root, option: passes(test.name))
        row = script.try_mutation(module, tmp_path, 0)
        assert module.read_text() == source and capsys.readouterr().out == row + "\n"
        return row.split()

    assert verdict(lambda name: module.read_text() == source) == ["caught", "m.py:2", *ROW]
    assert verdict(lambda name: module.read_text() == source or name == "m_test.py") == [
        *("caught", "m.py:2", *ROW, "(tests/a_test.py)")
    ]
    assert verdict(lambda name: True) == ["SURVIVED", "m.py:2", *ROW]
    assert verdict(lambda name: False) == ["SURVIVED", "m.py:2", *ROW]  # Fails without it, too.
    test.unlink()
    assert verdict(lambda name: module.read_text() == source)[-1] == "(tests/a_test.py)"


def test_a_file_of_tests_passes_or_fails_in_a_process_of_its_own(script, tmp_path, monkeypatch):
    test = tmp_path / "a_test.py"
    test.write_text(
        "import multiprocessing\ndef test(): assert not multiprocessing.parent_process()"
    )
    assert script.passes(test, tmp_path)
    test.write_text("def test(): assert False")
    assert not script.passes(test, tmp_path)
    monkeypatch.setattr(script, "SECONDS", 1)
    test.write_text("import time\ndef test(): time.sleep(60)")
    assert not script.passes(test, tmp_path)
