"""The house rules: who imports whom, how long a file is, which tests and flags exist."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("albert_tf", "data_pipeline", "export", "demo", "benchmarks", "experiments")
MAX_LINES = 400

# Package -> packages of this project that its library may import.
MAY_IMPORT = {
    "albert_tf": {"albert_tf"},
    "data_pipeline": {"data_pipeline"},
    "export": {"albert_tf", "data_pipeline", "export"},
    "demo": {"albert_tf", "data_pipeline", "export", "demo"},
    "benchmarks": {"albert_tf", "data_pipeline", "export", "benchmarks"},
    "experiments": {"albert_tf", "data_pipeline", "export", "benchmarks", "experiments"},
}


# Rooms (folders, or single modules) from the ground up. A room imports from lower floors only, and
# rooms of one floor do not know each other; what is in none, as the programs are, may import all.
# The one way up is `AlbertModel.from_preset`, which asks the lazy table of albert_tf/__init__.py.
FLOORS = (
    {"data_pipeline.errors", "data_pipeline.quiet"},
    {"data_pipeline.settings"},
    {"data_pipeline.files", "data_pipeline.schedules"},
    {"data_pipeline.command_line"},
    {"data_pipeline.corpus", "data_pipeline.records"},
    {"data_pipeline.tokenizers"},
    {"data_pipeline.tokenizers.fast"},
    {"data_pipeline.pretraining", "data_pipeline.finetuning"},
    {"data_pipeline.pretraining.without_records"},
    {"albert_tf.errors", "albert_tf.keras_choice", "albert_tf.variable_names"},
    {"albert_tf.config_file"},
    {"albert_tf.config", "albert_tf.keras_compat", "albert_tf.metrics", "albert_tf.machine"},
    {"albert_tf.analysis.costs", "albert_tf.pretrained.presets", "albert_tf.layers.operations"},
    {"albert_tf.analysis", "albert_tf.layers.blocks"},
    # None of these imports another: plain layers know nothing fast, optimizers no layers.
    {"albert_tf.layers", "albert_tf.layers.fast", "albert_tf.optimization"},
    {"albert_tf.models"},
    {"albert_tf.models.objectives", "albert_tf.checkpoints"},
    {"albert_tf.pretrained"},
    {"albert_tf.training.report"},
    {"albert_tf.training", "albert_tf.finetuning.tasks"},
    {"albert_tf.distillation"},
    {"albert_tf.pretraining", "albert_tf.finetuning", "albert_tf.text"},
    {"albert_tf.starting_weights", "albert_tf.keras3"},
    {"albert_tf.training.flags"},
    {"albert_tf.pretraining.flags", "albert_tf.finetuning.flags"},
    {
        "export.encoding",
        "export.graphs",
        "export.model_folder",
        "export.precision",
        "export.probes",
    },
    {"export.comparison", "export.finetuned", "export.fresh_process", "export.warmup"},
    {"export.check_export", "export.flags", "export.saved_model", "export.signatures"},
    {"export.client", "export.server", "export.tasks"},
    {"export.litert"},
)
# The packages themselves, and the command that runs any program.
IN_NO_ROOM = {"albert_tf", "albert_tf.commands", "albert_tf.moved", "data_pipeline", "export"}
# Rooms of albert_tf that know text and records.
KNOW_TEXT = {
    "albert_tf.distillation",
    "albert_tf.pretraining",
    "albert_tf.pretraining.flags",
    "albert_tf.finetuning",
    "albert_tf.finetuning.flags",
    "albert_tf.finetuning.tasks",
    "albert_tf.text",
    "albert_tf.training.flags",
}
# The one way to read and write files, of all packages.
FILES = "data_pipeline.files"
# What else the library of albert_tf imports of another package: the class of UserError, the names
# of a vocabulary's files, fields of dataclasses that become flags, and quiet starts.
SHARED = {
    "albert_tf": {"data_pipeline.quiet"},
    "albert_tf.commands": {"data_pipeline.quiet"},
    "albert_tf.errors": {"data_pipeline.errors"},
    "albert_tf.checkpoints.vocabulary": {"data_pipeline.tokenizers.file_names"},
    "albert_tf.training.batch_sizes": {"data_pipeline.schedules", "data_pipeline.settings"},
    "albert_tf.training.initial_model": {"data_pipeline.settings"},
    "albert_tf.training.settings": {"data_pipeline.settings"},
}


def room_of(module: str) -> str | None:
    """The room of FLOORS that a module is in, the innermost one."""
    rooms = [room for floor in FLOORS for room in floor if f"{module}.".startswith(f"{room}.")]
    return max(rooms, key=len, default=None)


def floor_of(room: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if room in floor)


def name_of(path: Path) -> str:
    """albert_tf/layers/attention.py -> albert_tf.layers.attention."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Module:
    """A module of the project: its name, text and syntax tree, and whether it is a program."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = name_of(path)
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.package = self.name.split(".")[0]
        self.room = room_of(self.name)
        # The file that keeps starts quiet runs itself as its filter.
        has_main = 'if __name__ == "__main__":' in self.text
        self.is_program = has_main and self.name != "data_pipeline.quiet"
        self.nodes = list(ast.walk(self.tree))

    @functools.cached_property
    def imports(self) -> set[str]:
        """Names of all modules that it imports, anywhere in it."""
        names = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                found = [f"{node.module}.{alias.name}" for alias in node.names]
                names.update(name if name in MODULE_NAMES else node.module for name in found)
        return names


MODULES = [Module(path) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
MODULE_NAMES = {module.name for module in MODULES}
PROGRAMS = {module.name for module in MODULES if module.is_program}


def test_packages_import_in_one_direction():
    wrong = []
    for module in MODULES:
        allowed = set(MAY_IMPORT[module.package])
        if module.package == "albert_tf" and (module.is_program or module.room in KNOW_TEXT):
            allowed.add("data_pipeline")
        names = module.imports - SHARED.get(module.name, set())
        names = {name for name in names if room_of(name) != FILES}
        used = {name.split(".")[0] for name in names} & {*PACKAGES, "tests"}
        wrong += [f"{module.name} imports {package}" for package in sorted(used - allowed)]
    assert not wrong


def test_rooms_import_from_lower_floors():
    wrong = []
    for module in MODULES:
        others = {room_of(name) for name in module.imports if name.startswith(PACKAGES)}
        wrong += [
            f"{module.name} imports {other}"
            for other in others - {module.room, None}
            if module.room and floor_of(other) >= floor_of(module.room)
        ]
    assert not wrong


def test_every_room_is_there():
    assert {room for floor in FLOORS for room in floor} <= MODULE_NAMES


def test_everything_but_programs_is_in_a_room():
    product = [each for each in MODULES if each.package in ("albert_tf", "data_pipeline", "export")]
    homeless = {module.name for module in product if module.room is None}
    assert homeless <= PROGRAMS | IN_NO_ROOM


def test_only_programs_read_flags():
    """The library is told by arguments; flags become dataclasses in modules called flags."""
    wrong = []
    for module in MODULES:
        is_of_flags = module.path.stem == "flags" or module.path.stem.endswith("_flags")
        if module.is_program or is_of_flags or module.room == "data_pipeline.command_line":
            continue
        names = {node.id for node in module.nodes if isinstance(node, ast.Name)}
        names |= {node.attr for node in module.nodes if isinstance(node, ast.Attribute)}
        names |= {name.split(".")[-1] for name in module.imports}
        if "FLAGS" in names:
            wrong.append(module.name)
    assert not wrong


def test_nobody_imports_a_program():
    found = {module.name: module.imports & PROGRAMS for module in MODULES}
    assert not {name: imported for name, imported in found.items() if imported}


def test_every_package_makes_the_start_of_its_programs_quiet():
    calls = re.compile(r"^(quiet\.)?prepare_if_program\(\)$", re.M)
    assert {each.name for each in MODULES if calls.search(each.text)} == set(PACKAGES)


def test_only_text_graphs_need_tensorflow_text():
    """Nobody imports it at the top of a module: reading, training and importing go without."""
    wrong = []
    for module in MODULES:
        top = [node for node in module.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {alias.name for node in top for alias in node.names}
        names |= {node.module for node in top if isinstance(node, ast.ImportFrom)}
        if "tensorflow_text" in names:
            wrong.append(module.name)
    assert not wrong


def test_a_file_has_one_subject():
    """It says what it is for; a program of albert_tf is a screen, all others a few."""
    wrong = []
    for module in MODULES:
        is_screen = module.is_program and module.path.parent.name == "albert_tf"
        lines, limit = len(module.text.splitlines()), 150 if is_screen else MAX_LINES
        if lines > limit:
            wrong.append(f"{module.name} has {lines} lines, more than {limit}")
        if not ast.get_docstring(module.tree):
            wrong.append(f"{module.name} does not say what it is for")
    assert not wrong


def test_a_model_is_read_in_1300_lines():
    """From the configuration to the models, docstrings included; the fast forms are apart, and
    comments do not count, which explain.
    """
    models = ("encoder", "heads", "task_model", "pretrainer", "classifiers")
    files = [ROOT / "albert_tf" / "models" / f"{name}.py" for name in models]
    files += [ROOT / "albert_tf" / "config.py", *(ROOT / "albert_tf" / "layers").glob("*.py")]
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert len([line for line in lines if not line.lstrip().startswith("#")]) <= 1300


def test_every_public_function_and_class_of_the_library_is_documented():
    missing = []
    for module in MODULES:
        for node in module.tree.body:
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_"):
                continue
            if node.name not in ("main", "define_flags") and not ast.get_docstring(node):
                missing.append(f"{module.name}.{node.name}")
    assert not missing


# Methods that Keras, absl and io give a meaning.
OF_LIBRARIES = {"build", "call", "get_config", "parse", "readable", "readinto"}


def test_every_public_method_is_documented_where_it_is_new():
    classes = [
        node for module in MODULES for node in module.nodes if isinstance(node, ast.ClassDef)
    ]
    methods = [
        (f"{each.name}.{node.name}", node)
        for each in classes
        for node in each.body
        if isinstance(node, ast.FunctionDef)
    ]
    documented = {node.name for _, node in methods if ast.get_docstring(node)} | OF_LIBRARIES
    public = [(name, node.name) for name, node in methods if "_" not in (name[0], node.name[0])]
    assert len(public) > 300
    assert not [name for name, method in public if method not in documented]


def test_makefile_has_the_commands_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    used = set(re.findall(r"^make (\w+)", readme, re.M))
    assert {"demo", "test"} <= used <= targets
