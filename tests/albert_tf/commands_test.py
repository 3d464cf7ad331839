"""The command `albert-tf`: it knows every program, and runs each as `python -m` does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from albert_tf import __version__, commands

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
    for package in ("albert_tf", "data_pipeline", "export")
    for path in (ROOT / package).rglob("*.py")
    if re.search(r"^    run_binary\(", path.read_text(encoding="utf-8"), re.M)
}


def call(monkeypatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["albert-tf", *arguments])
    commands.main()


def test_every_program_is_a_command():
    assert set(commands.COMMANDS.values()) == PROGRAMS


def test_help_lists_the_commands_without_importing_what_they_need():
    code = (
        "import sys; from albert_tf import commands; sys.argv = ['albert-tf', '--help']; "
        "commands.main(); print({'absl', 'numpy', 'tensorflow'} & set(sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    *text, imported = process.stdout.splitlines()
    assert imported == "set()", process.stderr
    purposes = dict(re.findall(r"^  ([a-z-]+)  +(\S.+\.)$", "\n".join(text), re.M))
    assert list(purposes) == list(commands.COMMANDS)
    assert text[-1] == f"Recipes, for --flagfile: {ROOT / 'configs'}"


def test_the_guide_has_every_command():
    guide = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+`) \| `", guide.partition("\n## Programs")[2], re.M)
    assert set(re.findall(r"`([a-z-]+)`", " ".join(rows))) == {"albert-tf", *commands.COMMANDS}


def test_ones_own_packages_do_not_hide_the_command_of_a_clone(tmp_path):
    for name in ("data_pipeline", "export"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    command = [sys.executable, str(ROOT / "scripts" / "albert-tf"), "--help"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert process.stdout.startswith(commands.help_text()), process.stderr


def test_a_program_runs_as_with_python_m(tmp_path, monkeypatch, capsys):
    """Processes that it starts find it by the name of its module."""
    (tmp_path / "a_program.py").write_text(
        "import sys; print(__name__, sys.modules['__main__'].__spec__.name, sys.argv)"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(commands.COMMANDS, "run-it", "a_program")
    call(monkeypatch, "run-it", "--seed=1", "--help")
    argv = [str(tmp_path / "a_program.py"), "--seed=1", "--help"]
    assert capsys.readouterr().out == f"__main__ a_program {argv}\n"


def test_an_unknown_command_is_one_sentence(monkeypatch, capsys):
    with pytest.raises(SystemExit) as exit_info:
        call(monkeypatch, "pretraining")
    assert exit_info.value.code == 2
    assert capsys.readouterr().err == (
        "albert-tf: error: 'pretraining' is not a command. Did you mean pretrain? (albert-tf "
        "--help lists them)\n"
    )


def test_version(monkeypatch, capsys):
    call(monkeypatch, "--version")
    assert capsys.readouterr().out == f"{__version__}\n"


def test_a_folder_that_hides_a_package_is_named(tmp_path):
    (tmp_path / "data_pipeline").mkdir()
    (tmp_path / "data_pipeline" / "__init__.py").touch()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "albert_tf.describe"]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert f"ImportError: {tmp_path}/data_pipeline hides the package" in process.stderr
