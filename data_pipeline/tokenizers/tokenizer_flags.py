"""Flags that override the settings stored with a vocabulary."""

from __future__ import annotations

from typing import Any

from data_pipeline.command_line import flags

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Defines --lower_case, --strip_accents and --space_chinese in the current group."""
    stored = "auto: as set in the vocabulary's folder"
    flags.DEFINE_auto_bool(
        "lower_case", None, f"Lower-case the text; {stored}, or true.", expert=True
    )
    flags.DEFINE_auto_bool(
        "strip_accents",
        None,
        f"Drop accents; {stored}, or true (WordPiece: same as --lower_case).",
        expert=True,
    )
    flags.DEFINE_auto_bool(
        "space_chinese",
        None,
        f"Split each ideograph into its own word, before WordPiece; {stored}, or true.",
        expert=True,
    )


def by_hand() -> dict[str, Any]:
    """The flags as arguments of `load_tokenizer`."""
    return {
        "lower": FLAGS.lower_case,
        "strip_accents": FLAGS.strip_accents,
        "space_chinese": FLAGS.space_chinese,
    }
