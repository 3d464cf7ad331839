"""The recipes and examples that come with the project, in a clone and installed."""

from __future__ import annotations

import sysconfig
from pathlib import Path

_CLONE = Path(__file__).parents[2]
RECIPES, TICKETS = "configs", "tickets"


def shared_folder(name: str) -> Path | None:
    """The folder of the recipes or of an example; None where it is not installed."""
    installed = Path(sysconfig.get_path("data")) / "share" / "albert-tf" / name
    in_clone = _CLONE / ("demo" if name == TICKETS else "") / name
    return next((folder for folder in (in_clone, installed) if folder.is_dir()), None)


def recipe(path: str) -> str:
    """The path of a recipe's flag file, given "finetune_mrpc" or "configs/finetune_mrpc.flags";
    any other path is returned as it is.
    """
    folder = shared_folder(RECIPES)
    name = path.removeprefix(f"{RECIPES}/").removesuffix(".flags")
    found = folder / f"{name}.flags" if folder and "/" not in name else None
    return str(found) if found and found.is_file() else path


def example(name: str) -> str:
    """The path of an example file such as "tickets/dev.tsv"; the name itself if there is none."""
    folder = shared_folder(TICKETS)
    return str(folder.parent / name) if folder else name
