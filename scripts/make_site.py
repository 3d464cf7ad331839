"""For `make docs`: what griffe does not see, and README.md with all files that its links lead to.

python scripts/make_site.py FOLDER copies them. They lie there as they do in the repository, so
that their links hold in both.
"""

import ast
import re
import shutil
import sys
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[1]


def linked(document: Path) -> set[Path]:
    """The files that a document links to."""
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+\.\w+)[)#]", document.read_text("utf-8"))
    return {(document.parent / target).resolve() for target in targets}


def copy_documents(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    waiting, done = {ROOT / "README.md", *ROOT.glob("docs/reference/*.md")}, set()
    while waiting:
        path = waiting.pop()
        done.add(path)
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        if path.suffix == ".ipynb":  # MkDocs resolves the links of Markdown only.
            text = re.sub(r"(\]\([\w./]+)\.(md|ipynb)\b", r"\1.html", path.read_text("utf-8"))
            copy.write_text(text, "utf-8")
        if path.suffix in (".md", ".ipynb"):
            waiting |= linked(path) - done


class NamesOfTables(griffe.Extension):
    """The names that a package imports when they are first used.

    griffe reads the code without running it, and sees none of them.
    """

    def on_module_members(self, *, mod, **kwargs) -> None:
        if "_MODULES" in mod.members:
            modules = ast.literal_eval(str(mod["_MODULES"].value)).items()
            homes = {name: module for module, names in modules for name in names}
        elif mod.is_init_module and "_HOMES" in mod.members:
            homes = ast.literal_eval(str(mod["_HOMES"].value))
        else:
            return
        for name, module in homes.items():
            mod.set_member(name, griffe.Alias(name, f"{module}.{name}"))
        mod.exports = sorted(homes)


if __name__ == "__main__":
    copy_documents(Path(sys.argv[1]))
