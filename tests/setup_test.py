"""Set-up as a stranger does it: requirements for both stacks, interpreter, environment, package."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_string
from email.message import Message
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import albert_tf

ROOT = Path(__file__).parents[1]
PACKAGES = ("albert_tf", "data_pipeline", "export")
LINES = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
REQUIREMENTS = [Requirement(line) for line in LINES if line and not line.startswith("#")]
PYARROW = Requirement((ROOT / "requirements-parquet.txt").read_text().splitlines()[-1])
THIS_PYTHON = ".".join(map(str, sys.version_info[:2]))
TENSORFLOW = {"3.10": "2.15", "3.11": "2.15", "3.12": "2.21", "3.13": "2.21"}

# Packages whose distribution has another name.
DISTRIBUTIONS = {
    "absl": "absl-py",
    "ai_edge_litert": "ai-edge-litert",
    "apache_beam": "apache-beam",
    "google": "tensorflow-serving-api",  # google.protobuf, which it needs.
    "google_crc32c": "google-crc32c",
    "grpc": "grpcio",
    "huggingface_hub": "huggingface-hub",
    "keras": "tensorflow",  # Which needs it, from 2.16 on.
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
    "tensorflow_addons": "tensorflow-addons",
    "tensorflow_serving": "tensorflow-serving-api",
    "tensorflow_text": "tensorflow-text",
    "tf_keras": "tf-keras",
    "werkzeug": "flask",  # Which is made of it.
}
NOT_IMPORTED = {"setuptools", "tensorboard"}  # TensorFlow and TensorBoard do.
# The modules that import what an extra installs.
OF_EXTRAS = {
    "albert_tf/optimization/addons.py",
    "data_pipeline/corpus/parquet.py",
    "data_pipeline/pretraining/beam.py",
    "export/client.py",
    "export/litert.py",
    "export/server/grpc_service.py",
    "export/server/listeners.py",
    "export/server/models.py",
    "export/server/monitoring.py",
    "export/server/playground/__init__.py",
    "export/server/rest.py",
    "export/warmup.py",
}


def applicable(python: str) -> list[Requirement]:
    """The requirements of one Python version."""
    environment = {"python_version": python}
    return [r for r in REQUIREMENTS if r.marker is None or r.marker.evaluate(environment)]


@pytest.mark.parametrize("python", TENSORFLOW)
def test_each_python_has_one_stack(python):
    requirements = applicable(python)
    names = [requirement.name for requirement in requirements]
    assert len(set(names)) == len(names)
    pinned = {requirement.name: str(requirement.specifier) for requirement in requirements}
    for name in ("tensorflow", "tensorflow-text", "tf-keras", "tensorflow-serving-api"):
        assert pinned[name].startswith(f"=={TENSORFLOW[python]}.")
    assert ("tensorflow-addons" in names) == (TENSORFLOW[python] == "2.15")


def test_every_requirement_has_an_upper_bound():
    for requirement in REQUIREMENTS:
        operators = {specifier.operator for specifier in requirement.specifier}
        assert operators & {"==", "<"}, requirement


@pytest.mark.parametrize("extra", ["beam", "parquet"])
def test_what_few_need_is_an_extra_with_a_file_of_its_own(extra):
    """`make` installs pyarrow for the tests; who installs the package takes the extra."""
    *_, line = (ROOT / f"requirements-{extra}.txt").read_text(encoding="utf-8").splitlines()
    assert line not in LINES
    assert f'{extra} = ["{line}"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_this_environment_is_one_of_the_supported_ones():
    for requirement in applicable(THIS_PYTHON):
        assert requirement.specifier.contains(version(requirement.name)), requirement


def test_every_place_names_the_same_pythons():
    oldest, *_, newest = TENSORFLOW
    after = f"3.{int(newest.partition('.')[2]) + 1}"
    script = (ROOT / "scripts" / "find_python.sh").read_text(encoding="utf-8")
    assert sorted(re.search(r'supported="(.*)"', script)[1].split()) == sorted(TENSORFLOW)
    assert f"{oldest} to {newest}" in script
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'requires-python = ">={oldest},<{after}"' in project
    assert f'target-version = "py{oldest.replace(".", "")}"' in project
    assert f"Python {oldest} to {newest}" in (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"COMPATIBILITY_PYTHONS := {oldest} {newest}\n" in makefile


def find_python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs the script where `folder` is all that the PATH has."""
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "find_python.sh"), *arguments],
        env={"PATH": str(folder), "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
    )


def fake_python(path: Path, version: str, machine: str = "x86_64", without: str = "") -> None:
    """A program that answers like a Python of another version, machine or set of modules."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pretend = (
        f"import platform, sys; sys.version_info = ({', '.join(version.split('.'))}, 0); "
        f"sys.executable = '{path}'; platform.machine = lambda: '{machine}'; "
        f"sys.modules.update(dict.fromkeys('{without}'.split())); code, sys.argv = sys.argv[2], "
        "sys.argv[2:]; exec(code)"
    )
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{pretend}" "$@"\n')
    path.chmod(0o755)


@pytest.mark.parametrize(
    "names, best",
    [
        ({"python3.12": "3.12", "python3.10": "3.10", "python3.9": "3.9"}, "3.10 python3.10"),
        ({"python3": "3.13", "python": "2.7"}, "3.13 python3"),
        ({"python3.12": "3.12", "python3": "3.11"}, "3.11 python3"),
        (
            {"python3.10": "3.10", "versions/3.11.4/bin/python3": "3.11"},
            "3.11 versions/3.11.4/bin/python3",
        ),
    ],
)
def test_the_best_python_is_found(tmp_path, names, best):
    for name, number in names.items():
        fake_python(tmp_path / name, number)
    shim = tmp_path / "python3.11"  # What pyenv leaves on the PATH for versions not selected.
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.11: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    result = find_python(tmp_path, PYENV_ROOT=str(tmp_path))
    number, _, name = best.partition(" ")
    assert result.stdout.splitlines() == [f"{number} {tmp_path / name}"], result.stderr
    assert result.stderr == ""


def test_a_python_is_named_by_version_or_path(tmp_path):
    folder = tmp_path / "with space"
    fake_python(folder / "python3.10", "3.10")
    fake_python(folder / "python3.12", "3.12")
    for argument in ("3.12", "python3.12", str(folder / "python3.12")):
        assert find_python(folder, argument).stdout == f"3.12 {folder}/python3.12\n"


@pytest.mark.parametrize(
    "fake, arguments, found",
    [
        (None, (), "none"),
        (None, ("/nowhere/python",), "/nowhere/python, which does not run as a Python"),
        ({"version": "3.9"}, (), "3.9 (python3: not supported)"),
        ({"version": "3.11", "without": "venv"}, (), "3.11 (python3: without its venv module)"),
        (
            {"version": "3.11", "machine": "arm64"},
            (),
            "3.11 (python3: no TensorFlow Text 2.15 for arm64)",
        ),
    ],
)
def test_no_supported_python_is_one_clear_sentence(tmp_path, fake, arguments, found):
    if fake:
        fake_python(tmp_path / "python3", **fake)
    result = find_python(tmp_path, *arguments)
    assert result.returncode == 1 and result.stdout == ""
    (sentence,) = result.stderr.splitlines()
    assert f"No supported Python was found (found: {found}): install" in sentence.replace(
        f"{tmp_path}/", ""
    )


@pytest.fixture
def make(tmp_path):
    """Runs make in a copy of the project's set-up that requires a local package only."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    # Without what an outer make hands on to an inner one.
    inner = ("LINT", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTEST_ARGS", "PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in inner}

    def make(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["make", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return make


def test_make_installs_once_and_again_when_requirements_change(tmp_path, make):
    requirements, parquet = (tmp_path / f"requirements{name}.txt" for name in ("", "-parquet"))
    for file in (requirements, parquet):
        file.write_text("# Nothing.\n")
    install = ("install", f"PYTHON={sys.executable}")
    first = make(*install)
    assert first.returncode == 0, first.stderr
    assert "Installing the packages" in first.stderr
    stamp = tmp_path / f".venv-{THIS_PYTHON}" / "requirements.installed"
    written = stamp.stat().st_mtime_ns

    second = make(*install)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    command = stamp.with_name("bin") / "albert-tf"
    assert command.samefile(tmp_path / "scripts" / "albert-tf") and os.access(command, os.X_OK)
    assert stamp.stat().st_mtime_ns == written

    parquet.write_text("./missing\n")
    failed = make(*install)
    assert failed.returncode != 0 and "missing" in failed.stderr
    assert not stamp.exists(), "a failed installation must not count"
    parquet.write_text("# Nothing once more.\n")
    assert make(*install).returncode == 0 and stamp.exists()


@pytest.mark.parametrize(("tests", "lint"), [(0, 0), (1, 0), (0, 2)])
def test_the_lint_runs_beside_the_tests(tmp_path, make, tests, lint):
    """Whichever fails, both are told."""
    programs = tmp_path / f".venv-{THIS_PYTHON}" / "bin"
    programs.mkdir(parents=True)
    (programs.parent / "requirements.installed").touch()
    codes = {"python": tests, "ruff": 0, "codespell": 0, "vermin": 0, "mypy": lint}
    for name, code in codes.items():
        program = f'#!/bin/sh\n[ "$1" = -c ] && exit\necho "{name} ran"\nexit {code}\n'
        (programs / name).write_text(program)
        (programs / name).chmod(0o755)
    for name in ("", "-parquet"):
        (tmp_path / f"requirements{name}.txt").touch()
    for target in ("test", "test-all"):
        result = make(target, f"PYTHON={sys.executable}")
        assert (result.returncode == 0) == (tests == lint == 0)
        assert result.stdout.index("python ran") < result.stdout.index("mypy ran")
        result = make(target, "LINT=no", f"PYTHON={sys.executable}")
        assert (result.returncode == 0) == (tests == 0)
        assert "python ran" in result.stdout and "mypy" not in result.stdout


def test_make_without_python_is_one_clear_sentence(make):
    result = make("test", "PYTHON=/nowhere/python")
    assert result.returncode != 0
    assert result.stderr.startswith("No supported Python was found (found: /nowhere/python, which")
    assert len(result.stderr.splitlines()) == 2  # The other one is make's own.


@pytest.mark.parametrize("script", ["Makefile", ".ci/run"])
def test_the_parts_of_the_tests_exist(script):
    """Or pytest would refuse the command, in the last of its parts perhaps."""
    text = (ROOT / script).read_text().replace("$ours", "tests/albert_tf")
    paths = set(re.findall(r"\btests/[\w/]+(?:\.py)?", text))
    assert len(paths) > 5
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_help_needs_no_python(make):
    result = make("help", "PYTHON=/nowhere/python")
    assert result.returncode == 0 and result.stderr == ""
    assert {"demo", "test", "lint"} <= set(re.findall(r"^make (\w+)", result.stdout, re.M))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> dict[str, str]:
    """The wheel's files: name -> content."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in (*PACKAGES, "configs", "demo"):
        shutil.copytree(ROOT / name, source / name)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "wheel", *options, f"--wheel-dir={folder}"]
    subprocess.run([*command, str(source)], check=True)
    (path,) = folder.glob("albert_tf-*-py3-none-any.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode("utf-8", "replace") for name in archive.namelist()}


@pytest.fixture(scope="module")
def metadata(wheel) -> Message:
    """The wheel's METADATA."""
    (text,) = (text for name, text in wheel.items() if name.endswith(".dist-info/METADATA"))
    return message_from_string(text)


@pytest.fixture(scope="module")
def published(metadata) -> dict[str, list[Requirement]]:
    """Extra -> its requirements; "" has what running needs."""
    found = {extra: [] for extra in ("", *metadata.get_all("Provides-Extra"))}
    for requirement in map(Requirement, metadata.get_all("Requires-Dist")):
        extra = re.search(r'extra == "(\w+)"', str(requirement.marker))
        found[extra[1] if extra else ""].append(requirement)
    return found


def test_the_wheel_has_every_file_of_the_packages(wheel, metadata):
    expected = {path.relative_to(ROOT) for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    for folder in ("serving", "server/playground"):
        served = (ROOT / "export" / folder).iterdir()
        expected |= {path.relative_to(ROOT) for path in served if path.is_file()}
    assert {str(path) for path in expected} <= set(wheel)
    in_the_clone_alone = ("benchmarks", "configs", "demo", "experiments", "tests")
    assert not [name for name in wheel if name.startswith(in_the_clone_alone)]
    assert {f"{name}/py.typed" for name in PACKAGES} <= set(wheel)
    shared = {"dev.tsv", "train.tsv"}
    assert shared < {Path(name).name for name in wheel if "/share/albert-tf/tickets/" in name}
    assert metadata["Keywords"] and "Typing :: Typed" in metadata.get_all("Classifier")
    recipes = {Path(name).name for name in wheel if "/share/albert-tf/configs/" in name}
    files = {path.name for path in (ROOT / "configs").glob("*.flags")}
    # Those of the demonstration need a clone, and name files in it.
    assert recipes == {name for name in files if not name.startswith("demo_")}
    for name in recipes:
        assert "_file=" not in (ROOT / "configs" / name).read_text()
    assert any(name.endswith("LICENSE") for name in wheel)
    assert "Apache" in metadata["License"] and metadata["Version"] == albert_tf.__version__
    (text,) = (text for name, text in wheel.items() if name.endswith("/entry_points.txt"))
    assert text.split() == ["[console_scripts]", "albert-tf", "=", "albert_tf.commands:main"]


def test_the_citation_is_of_this_version(metadata):
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for field, name in (("version", "Version"), ("license", "License"), ("  - name", "Author")):
        assert re.search(rf"^{field}: (.+)$", citation, re.M)[1] == metadata[name]


def overlap(*requirements: Requirement) -> bool:
    """Whether there is a Python on which all of them count, whatever the extra."""
    extras = ["", "serving", "beam", "parquet", "addons", "litert", "test"]
    environments = [{"python_version": p, "extra": e} for p in TENSORFLOW for e in extras]
    return any(
        all(one.marker is None or one.marker.evaluate(where) for one in requirements)
        for where in environments
    )


def test_the_published_ranges_hold_what_the_tests_run_with(published):
    """Every range lets through, on each Python, what the pinned requirements install there."""
    for requirement in (one for extra in published.values() for one in extra):
        if requirement.name in ("albert-tf", "apache-beam"):
            continue
        pins = [*REQUIREMENTS, PYARROW]
        pinned = [pin for pin in pins if canonicalize_name(pin.name) == requirement.name]
        assert pinned, f"{requirement} is not among the pinned requirements"
        for pin in pinned:
            exact = re.fullmatch(r"==(.*)", str(pin.specifier))
            if exact and overlap(requirement, pin):
                assert requirement.specifier.contains(exact[1]), (requirement, pin)
            elif not exact and not pin.marker:
                assert requirement.specifier == pin.specifier, (requirement, pin)


def distributions(text: str) -> set[str]:
    """Distributions of the packages that a module imports when it is imported itself or later."""
    nodes = list(ast.walk(ast.parse(text)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    packages = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {*PACKAGES}
    return {DISTRIBUTIONS.get(name, name) for name in packages}


def test_what_the_sources_import_is_published(wheel, published):
    """All that is imported, nothing else, and no tools of the tests."""
    needed = {name: distributions(text) for name, text in wheel.items() if name.endswith(".py")}
    core = {requirement.name for requirement in published[""]}
    extras = {
        requirement.name
        for extra in ("serving", "beam", "parquet", "addons", "litert")
        for requirement in published[extra]
    }
    assert set().union(*needed.values()) == (core | extras) - NOT_IMPORTED
    assert {name for name in needed if needed[name] - core} == OF_EXTRAS
    tools = {requirement.name for requirement in published["test"]}
    assert {"pytest", "hypothesis"} <= tools and not tools & core
