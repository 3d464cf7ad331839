"""Defines flags from the settings of a dataclass, and reads the dataclass from the flags.

define(LoopSettings, "Loop", checkpoint_steps=100)   --steps_per_loop, --checkpoint_steps, ...
read(LoopSettings)                                   LoopSettings(steps_per_loop=10, ...)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any, TypeVar

from data_pipeline.command_line import flags
from data_pipeline.settings import Setting, Settings, settings_of

T = TypeVar("T", bound=Settings)


def define(
    kind: type[Settings],
    group: str,
    *,
    without: Collection[str] = (),
    hidden: Collection[str] = (),
    **defaults: Any,
) -> None:
    """Defines a flag for each setting of a dataclass except `without`, in a group of --help; only
    --helpfull shows the `hidden` ones. `defaults` replace the settings' defaults in this program. A
    setting with the name of an existing flag, such as --seed, shares that flag.
    """
    flags.group(group)
    for each in settings_of(kind):
        if each.name not in without and each.name not in flags.FLAGS:
            is_hidden = each.expert or each.name in hidden
            _define(each, defaults.get(each.name, each.default), is_hidden)


def _define(setting: Setting, default: Any, is_hidden: bool) -> None:
    is_required = default is dataclasses.MISSING
    default = None if is_required else default
    common = {"required": is_required, "expert": is_hidden}
    if setting.numbers:
        flags.DEFINE_number(setting.name, default, setting.help, setting.numbers, **common)
    elif setting.kind is tuple:
        flags.DEFINE_list(setting.name, list(default or ()), setting.help, **common)
        if setting.one_of:
            flags.register_validator(
                setting.name,
                lambda names: not setting.complaint(names),
                message=f"{setting.complaint(['?'])}.",
            )
    elif setting.kind is bool:
        define_bool = flags.DEFINE_auto_bool if setting.may_be_none else flags.DEFINE_bool
        define_bool(setting.name, default, setting.help, **common)
    elif setting.one_of:
        flags.DEFINE_enum(setting.name, default, setting.one_of, setting.help, **common)
    else:
        flags.DEFINE_string(
            setting.name, default, setting.help, is_address=setting.is_address, **common
        )


def read(kind: type[T], **others: Any) -> T:
    """Creates a dataclass of settings; each field takes its value from `others`, from the flag of
    the same name, or from its default. Inconsistent values are a UserError.
    """
    names = {field.name for field in dataclasses.fields(kind)} - set(others)
    values = {name: flags.FLAGS[name].value for name in names if name in flags.FLAGS}
    # absl returns lists where the dataclasses have tuples.
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return kind(**{**values, **lists}, **others)
