"""The notebooks run from the first cell to the last, and are kept with their outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MACHINE_PATH = re.compile(r"(?<!\w)/(home|root|tmp|Users|work|usr|opt)/")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.mark.table
@every_notebook
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "demo").symlink_to(ROOT / "demo")
    folder = tmp_path / "notebooks"
    folder.mkdir()
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()


@every_notebook
def test_outputs_are_kept_and_name_no_machine(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert outputs
    assert not any(each["output_type"] == "error" for each in outputs)
    assert not any(each.get("name") == "stderr" for each in outputs)
    assert not MACHINE_PATH.search(str(outputs))
    assert path.stat().st_size < 200_000
