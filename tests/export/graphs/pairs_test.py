"""The pairs that the table of `export.graphs` names exist, and so do their tests."""

import re
from pathlib import Path

from export import graphs

ROOT = Path(__file__).parents[3]
ROWS = re.findall(r"^\| (\w+)\.(\w+) +\| (\w+)\.(\w+) +\| (\w+) +\|$", graphs.__doc__, re.M)


def has(folders, module, name):
    """Whether a module of this name, anywhere in folders, defines a function or class."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob(f"{module}.py")]
    return any(re.search(rf"^(def|class) {name}\b", path.read_text(), re.M) for path in paths)


def test_both_sides_of_each_pair_and_its_test_exist():
    assert len(ROWS) == graphs.__doc__.count("\n|") - 2
    for module, name, graph_module, graph_name, test in ROWS:
        assert has(("data_pipeline", "albert_tf", "export"), module, name), name
        assert has(("export/graphs", "data_pipeline/tokenizers"), graph_module, graph_name)
        assert list((ROOT / "tests").rglob(f"{test}_test.py")), test


def test_every_module_of_the_folder_has_a_row():
    modules = {path.stem for path in (ROOT / "export" / "graphs").glob("*.py")}
    assert modules - {"__init__", "checks"} <= {row[2] for row in ROWS}
