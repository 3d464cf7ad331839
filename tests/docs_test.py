"""Documents name what exists: links, files, programs and flags."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from albert_tf.commands import COMMANDS
from tests.docstrings_test import HOMES, KERAS_3
from tests.program_flags import PACKAGES, PROGRAMS, flags_of

ROOT = Path(__file__).parents[1]
FOLDERS = (*PACKAGES, "tests", "configs", "docs", "scripts")
_WITH_DOCUMENTS = [ROOT / folder for folder in ("docs", "experiments", "export")]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(path for folder in _WITH_DOCUMENTS for path in folder.rglob("*.md"))]
)
# CHANGELOG.md tells of names that are gone.
TODAY = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]
# Documents that programs write.
WRITTEN = {"results.md", "seeds.md", "search.md", "ensemble.md"}
OF_EVERY_PROGRAM = {"print_flags", "flagfile", "help", "helpfull"}
# Of docker, curl, pip, gcloud and tensorflow/serving; of scripts/mutate.py.
FLAGS_OF_OTHERS = {
    "rm", "retry", "retry-connrefused", "retry-delay", "mixed_precision", "under", "region",
    "display-name", "artifact-uri", "container-image-uri",
}  # fmt: skip


def name_of(path: Path) -> str:
    """docs/data.md."""
    return path.relative_to(ROOT).as_posix()


every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
every_document_of_today = pytest.mark.parametrize("path", TODAY, ids=name_of)


@functools.cache
def files() -> list[str]:
    """Every file and folder of the project, as "/docs/data.md" and "/docs"."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return [f"/{name_of(path)}" for path in (*found, *ROOT.iterdir())]


@functools.cache
def code_of_tests() -> str:
    """The code of all tests."""
    return "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))


@functools.cache
def text_of(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a document: "## A run" -> "a-run"."""
    prose = re.sub(r"^```.*?^```", "", text_of(path), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", prose, re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@every_document
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(path)):
        if re.match(r"https?:", target):
            continue
        file, _, anchor = target.partition("#")
        found = path.parent / file if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@every_document_of_today
def test_files_of_the_project_exist(path):
    """`streams.py` stands for any file of that name, `corpus/streams.py` for one in that folder;
    `test_name` for a test.
    """
    for span in re.findall(r"`([^`\n]+)`", text_of(path)):
        is_source = re.fullmatch(r"[\w/]+\.(py|sh|flags|md)", span)
        is_in_folder = re.fullmatch(rf"({'|'.join(FOLDERS)})/[\w./]*", span)
        if (is_source or is_in_folder) and span not in WRITTEN:
            wanted = f"/{span.rstrip('/')}"
            assert any(file.endswith(wanted) for file in files()), span
        if re.fullmatch(r"test_\w+", span):
            assert f"def {span}(" in code_of_tests(), span


@every_document_of_today
def test_commands_are_of_programs_with_these_flags(path):
    text = re.sub(r"\\\n\s*", "", text_of(path))
    commands = re.findall(r"(python -m|albert-tf) ([\w.]+(?:-[a-z]+)*)([^`\n]*)", text)
    for runner, name, arguments in commands:
        module = COMMANDS[name] if runner == "albert-tf" else name
        if module.split(".")[0] not in PACKAGES:
            continue
        assert runner == "albert-tf" or module not in COMMANDS.values(), "albert-tf has a name"
        program = module if module in PROGRAMS else f"{module}.__main__"
        used = set(re.findall(r"(?:^|[\s\"])--(\w+)", arguments))
        assert used <= {*flags_of(program), *OF_EVERY_PROGRAM}, module


@every_document_of_today
def test_flags_exist(path):
    defined = OF_EVERY_PROGRAM | FLAGS_OF_OTHERS
    defined = defined.union(*map(flags_of, PROGRAMS))
    used = re.findall(r"(?<![\w=-])--([a-z][\w-]*)", text_of(path))
    unknown = {
        flag for flag in used if flag not in defined and flag.removeprefix("no") not in defined
    }
    assert not unknown


@every_document_of_today
def test_user_code_imports_from_homes(path):
    start = r"^(?:>>> )?"
    imports = re.findall(
        start + r"from ([\w.]+) import (\([\w,\s]+\)|[\w, ]+)$", text_of(path), re.M
    )
    imports += re.findall(start + r"import ([\w.]+)()", text_of(path), re.M)
    for module, names in imports:
        if module.split(".")[0] in PACKAGES:
            assert module in (*HOMES, KERAS_3)
            if module not in HOMES:
                continue
            for name in re.findall(r"\w+", names):
                is_home = f"{module}.{name}" in HOMES
                assert is_home or name in importlib.import_module(module).__all__, name


@pytest.mark.parametrize("home", HOMES)
def test_homes_have_what_they_promise(home):
    module = importlib.import_module(home)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert not hasattr(module, "no_such_name")


def test_importing_the_packages_imports_no_tensorflow():
    check = "assert not {'tensorflow', 'numpy'} & set(sys.modules)"
    program = f"import sys, albert_tf.finetuning, data_pipeline; {check}"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_flag_files_name_flags_that_exist():
    defined = set().union(*map(flags_of, PROGRAMS))
    unknown = {
        f"{path.name}: {line}"
        for path in (ROOT / "configs").glob("*.flags")
        for line in text_of(path).splitlines()
        if line.startswith("--") and line[2:].split("=")[0] not in defined
    }
    assert not unknown
