"""Reads and writes Hugging Face's files next to a vocabulary that affect ids.

tokenizer_config.json     case, accents, ideographs, names of special tokens
tokenizer.json            the same as a normalizer
special_tokens_map.json   names of special tokens
added_tokens.json         tokens that the vocabulary lacks

Each key is either supported, known not to change ids, or rejected by name. The ids are those of
transformers' AlbertTokenizer and BertTokenizer, the classes in Python.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files, storage
from data_pipeline.tokenizers import file_names
from data_pipeline.tokenizers.base import Tokenizer

CONFIG, FAST = "tokenizer_config.json", "tokenizer.json"
TOKENS_MAP, ADDED = "special_tokens_map.json", "added_tokens.json"

# Key of tokenizer_config.json -> field of TokenizerSettings, and the key's value for True.
_FOLLOWED = {
    file_names.SENTENCEPIECE: {
        "do_lower_case": ("lower", True),
        "keep_accents": ("strip_accents", False),
    },
    file_names.WORDPIECE: {
        "do_lower_case": ("lower", True),
        "strip_accents": ("strip_accents", True),
        "tokenize_chinese_chars": ("space_chinese", True),
    },
}
_CLASSES = {
    file_names.SENTENCEPIECE: ("AlbertTokenizer",),
    file_names.WORDPIECE: ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
}
# Keys that change ids unless they have one of these values.
_ONLY: dict[str, tuple[Any, ...]] = {
    "remove_space": (True,),
    "sp_model_kwargs": ({}, None),
    "do_basic_tokenize": (True,),
    "never_split": ([], None),
    "clean_text": (True,),
    "extra_special_tokens": ({}, [], None),
    "wordpieces_prefix": ("##",),
}
_ONLY_WORDPIECE = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
_ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")  # As SPECIAL_PIECES.
_ENDS = ("bos_token", "eos_token")
_TOKENS = (*_ROLES, *_ENDS, "additional_special_tokens", "added_tokens_decoder")
# Keys that do not change ids: lengths, padding, decoding, names of files and of programs; in the
# last line, keys of the other kind of tokenizer.
_HARMLESS = """
auto_map backend chat_template clean_up_tokenization_spaces device_map errors from_slow
full_tokenizer_file init_inputs is_fast is_local legacy local_files_only max_len max_length
model_input_names model_max_length name_or_path pad_to_multiple_of pad_token_type_id padding
padding_side processor_class return_token_type_ids special_tokens_map_file
split_special_tokens stride tokenizer_file transformers_version truncation truncation_side
truncation_strategy use_fast verbose vocab_file vocab_size
keep_accents strip_accents tokenize_chinese_chars
""".split()  # noqa: SIM905
# Normalizer steps in an ALBERT's tokenizer.json that other files or the rules determine.
_REPLACED = (({"String": "``"}, '"'), ({"String": "''"}, '"'))
_SPACES = {"Regex": " {2,}"}


class Stated(NamedTuple):
    """The value of a field of TokenizerSettings, and the file and key that state it."""

    value: bool
    place: str


def _read(folder: str, name: str) -> dict[str, Any]:
    """The content of a JSON file of a folder; {} if there is none."""
    path = os.path.join(folder, name)
    if not storage.exists(path):
        return {}
    values = atomic_files.read_json(path)
    if not isinstance(values, dict):
        raise UserError(f"{path} should hold a JSON object; received {values!r:.60}.")
    return values


def has_files(folder: str) -> bool:
    """Whether one of these files is in a folder, or a model's config.json."""
    names = (CONFIG, FAST, TOKENS_MAP, ADDED, "config.json")
    return any(storage.exists(os.path.join(folder, name)) for name in names)


def read_settings(folder: str, kind: type[Tokenizer]) -> dict[str, Stated]:
    """Those of `lower`, `strip_accents` and `space_chinese` that the files of a folder state. Files
    that contradict each other, and an unsupported key that changes ids, are a UserError.
    """
    stated: dict[str, Stated] = {}
    with _as_written(folder):
        all_found = [*_of_config(folder, kind), *_of_fast(folder, kind)]
    for name, found in all_found:
        known = stated.setdefault(name, found)
        if known.value != found.value:
            raise UserError(
                f"{known.place}, and {found.place}: they contradict each other. Correct the one "
                "that is wrong."
            )
    return stated


@contextlib.contextmanager
def _as_written(folder: str) -> Iterator[None]:
    """A context that names the files in the error if they are not as transformers writes them."""
    try:
        yield
    except UserError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{folder}: {CONFIG}, {FAST}, {TOKENS_MAP} or {ADDED} is not as transformers writes "
            f"it ({error!r}). Copy it again."
        ) from None


def _refused(path: str, key: str, value: Any, remedy: str) -> UserError:
    return UserError(
        f"{path}: {key} is {value!r:.80}, which changes ids and is not supported. {remedy}"
    )


def _of_config(folder: str, kind: type[Tokenizer]) -> Iterator[tuple[str, Stated]]:
    """The settings in tokenizer_config.json; other keys are checked."""
    path = os.path.join(folder, CONFIG)
    followed, classes = _FOLLOWED[kind.STORED_NAME], _CLASSES[kind.STORED_NAME]
    for key, value in _read(folder, CONFIG).items():
        if key in followed:
            if value is None and key == "strip_accents":  # It follows `lower`.
                continue
            if not isinstance(value, bool):
                raise UserError(f"{path}: {key} should be true or false; received {value!r:.80}.")
            name, meaning = followed[key]
            yield name, Stated(value == meaning, f"{path} has {key} {value}")
        elif key == "tokenizer_class":
            if value not in (*classes, *(f"{each}Fast" for each in classes), None):
                remedy = f"{kind.STORED_NAME} is read as by {classes[0]}; convert it first."
                raise _refused(path, key, value, remedy)
        elif key in _ONLY:
            if value not in _ONLY[key]:
                remedy = f"Use a tokenizer with {key} {_ONLY[key][0]!r}."
                raise _refused(path, key, value, remedy)
        elif key not in _HARMLESS and key not in _TOKENS:
            raise UserError(
                f"{path}: the key {key} is unknown and could change ids; received "
                f"{value!r:.80}. Remove it from the file if it does not."
            )


def _of_fast(folder: str, kind: type[Tokenizer]) -> Iterator[tuple[str, Stated]]:
    """The settings in the normalizer of tokenizer.json; other steps are checked."""
    path, values = os.path.join(folder, FAST), _read(folder, FAST)
    if "model" not in values:
        return
    is_wordpiece = kind.STORED_NAME == file_names.WORDPIECE
    model = values["model"]
    kinds = ("WordPiece",) if is_wordpiece else ("Unigram", "BPE")
    # The oldest files do not name the type.
    if model.get("type", kinds[0]) not in kinds:
        remedy = f"{kind.STORED_NAME} needs a model of {' or '.join(kinds)}."
        raise _refused(path, "model.type", model["type"], remedy)
    if is_wordpiece:
        for key, only in _ONLY_WORDPIECE.items():
            if model.get(key, only) != only:
                raise _refused(path, key, model[key], f"Use a tokenizer with {key} {only!r}.")
    allowed = {"BertPreTokenizer"} if is_wordpiece else {"WhitespaceSplit", "Metaspace"}
    splits = {step["type"] for step in _steps(values.get("pre_tokenizer"), "pretokenizers")}
    if not splits or not splits <= allowed:
        remedy = f"Use one with {' and '.join(sorted(allowed))}."
        raise _refused(path, "pre_tokenizer", values.get("pre_tokenizer"), remedy)
    steps = _steps(values.get("normalizer"), "normalizers")
    found = _of_bert(path, steps) if is_wordpiece else _of_albert(path, steps)
    for name, value in found.items():
        if value is not None:
            yield name, Stated(value, f"{path} has a normalizer with {name} {value}")


def _steps(step: dict[str, Any] | None, parts: str) -> list[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer, with nested sequences flattened."""
    if step is None:
        return []
    if step.get("type") != "Sequence":
        return [step]
    return [each for part in step[parts] for each in _steps(part, parts)]


def _of_bert(path: str, steps: list[dict[str, Any]]) -> dict[str, bool | None]:
    if len(steps) != 1 or steps[0]["type"] != "BertNormalizer":
        raise _refused(path, "normalizer", steps, "Use one with a BertNormalizer.")
    step = steps[0]
    if not step.get("clean_text", True):
        raise _refused(path, "clean_text", False, "Use a tokenizer that cleans text.")
    return {
        "lower": step.get("lowercase"),
        "strip_accents": step.get("strip_accents"),
        "space_chinese": step.get("handle_chinese_chars"),
    }


def _of_albert(path: str, steps: list[dict[str, Any]]) -> dict[str, bool | None]:
    for step in steps:
        if step["type"] == "Replace":
            pattern, content = step["pattern"], step["content"]
            is_known = (pattern, content) in _REPLACED or pattern == _SPACES
        else:
            is_known = step["type"] in ("NFKD", "StripAccents", "Lowercase", "Precompiled")
        if not is_known:
            raise _refused(path, "normalizer", step, "Use one like that of AlbertTokenizer.")
    types = {step["type"] for step in steps}
    if ("NFKD" in types) != ("StripAccents" in types):
        remedy = "Use NFKD and StripAccents together, or neither."
        raise _refused(path, "normalizer", sorted(types), remedy)
    return {"lower": "Lowercase" in types, "strip_accents": "NFKD" in types}


class _Token(NamedTuple):
    """A token named in a file: its key there, its text, and its id, if the file has it."""

    place: str
    key: str
    content: str
    id: int | None


def _content(token: Any) -> str:
    return str(token["content"]) if isinstance(token, dict) else str(token)


def _tokens(folder: str) -> Iterator[_Token]:
    """All tokens that the files of a folder name."""
    for file in (CONFIG, TOKENS_MAP):
        path = os.path.join(folder, file)
        for key, value in _read(folder, file).items():
            if value is None or (file == CONFIG and key not in _TOKENS):
                continue
            if key == "added_tokens_decoder":
                for number, token in value.items():
                    yield _Token(path, key, _content(token), int(number))
            else:
                for token in value if isinstance(value, list) else [value]:
                    yield _Token(path, key, _content(token), None)
    path = os.path.join(folder, ADDED)
    for token, number in _read(folder, ADDED).items():
        yield _Token(path, "added_tokens", token, number)
    path = os.path.join(folder, FAST)
    for token in _read(folder, FAST).get("added_tokens") or ():
        yield _Token(path, "added_tokens", _content(token), token["id"])


def check_tokens(folder: str, tokenizer: Tokenizer) -> None:
    """Raises UserError unless tokenizer.json has the pieces of the vocabulary, and all tokens named
    in files are its special pieces.
    """
    with _as_written(folder):
        tokens, fast = list(_tokens(folder)), _read(folder, FAST).get("model", {}).get("vocab")
    # For a SentencePiece vocabulary it is a list with scores.
    if isinstance(fast, dict) and fast != {piece: n for n, piece in enumerate(tokenizer.pieces)}:
        raise UserError(
            f"{os.path.join(folder, FAST)} has other pieces or ids than {tokenizer.vocab_file}. "
            "Copy both from one place, or remove the one that is wrong."
        )
    special = dict(zip(_ROLES, tokenizer.SPECIAL_PIECES))
    ends = {token.content for token in tokens if token.key in _ENDS}
    for place, key, content, number in tokens:
        if key in special and content != special[key]:
            raise UserError(
                f"{place}: {key} is {content!r}, but the vocabularies that are read here have "
                f"{special[key]!r}. Rename it in {tokenizer.vocab_file} and in that file."
            )
        # transformers extracts other added tokens from a text first, which no tokenizer in a graph
        # does.
        is_special = content in ends or content in special.values()
        if not (is_special and _is_piece(tokenizer, content, number)):
            raise UserError(
                f"{place}: {key} has the added token {content!r}, which is not a special piece of "
                f"{tokenizer.vocab_file}{'' if number is None else f' with the id {number}'}, and "
                "is not supported. Remove it from that file if no text needs it; it is then "
                "split like other words."
            )


def _is_piece(tokenizer: Tokenizer, content: str, number: int | None) -> bool:
    """Whether a vocabulary has a piece; if `number` is not None, with this id."""
    if number is None:
        return content in tokenizer.pieces
    return tokenizer.pieces[number : number + 1] == [content]


def config_of(tokenizer: Tokenizer, max_length: int) -> dict[str, Any]:
    """The content of a tokenizer_config.json that makes transformers give the same ids."""
    values = {"tokenizer_class": _CLASSES[tokenizer.STORED_NAME][0], "model_max_length": max_length}
    for key, (name, meaning) in _FOLLOWED[tokenizer.STORED_NAME].items():
        values[key] = getattr(tokenizer.settings, name) == meaning
    return values
