"""The formats of corpus files (`input_format`): a class each, and the list `FORMATS` of them.

A format decides three things, in this order: whether a file has this format (`detects`), where a
document ends (`ends_document`, used while a file is cut into blocks; only formats decide this), and
which documents a part of a file holds (`documents`). A document never spans files.
"""

from __future__ import annotations

import abc
import functools
import html
import itertools
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.sentences import replace_surrogates, split_paragraphs
from data_pipeline.corpus.streams import Reader, compression
from data_pipeline.corpus.text_part import TextPart
from data_pipeline.errors import UserError

_SAMPLE_LINES, _SAMPLE_BYTES = 1000, 16 << 20  # The sample that tells paragraphs from lines.
_MAX_LINE_BYTES, _MAX_JSON_BYTES = 1 << 20, 32 << 20
# The end of a sentence followed by more text; Chinese and Japanese put no space between the two.
_SENTENCE_END_INSIDE = re.compile(
    r"""[.!?。！？]["'”’)\]]*\s+[^\W\d_a-z]|[。！？]["'”’」』）)\]]*[^\s"'”’」』）)\]。！？]"""
)
_TAG = re.compile(rb"</?[A-Za-z!][^<>]*>")
_HTML = re.compile(rb"\s*<(!doctype\s+)?html\b", re.I)
_WRAPPED_LINE = re.compile(r"\s*\S.{58,78}[^\s.!?。！？:;\"'”’)]\s*")  # 60 to 80 characters.
_FEW_LINES = 10
_TITLE = re.compile(r'<doc [^>]*title="([^"]*)"')


class RawDocument(NamedTuple):
    """A document before its sentences are split: lines that are sentences, or paragraphs."""

    texts: list[str]
    are_sentences: bool = False


class Beginning:
    """The beginning of a file, which shows its format."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader  # Lines are read when a format needs them.
        self.path, self.is_parquet = reader.path, reader.is_parquet

    @functools.cached_property
    def sample(self) -> list[bytes]:
        """The first 1,000 lines with text, or fewer if they are long."""
        lines = filter(bytes.strip, iter(lambda: self._reader.read_line(_MAX_LINE_BYTES), b""))
        found: list[bytes] = []
        num_bytes = 0
        for line in lines:
            found.append(line)
            num_bytes += len(line)
            if len(found) == _SAMPLE_LINES or num_bytes >= _SAMPLE_BYTES:
                break
        return found


class Format(abc.ABC):
    """A way in which files hold documents."""

    name: str  # Its value of --input_format.
    certainly = ""  # What a detected file is, in words; "" for a format that is only guessed.
    remedy = "leave it at auto"  # The advice if another format is given for such a file.
    line_limit = _MAX_LINE_BYTES  # Longer lines are not kept whole in memory.
    divides_long_lines = True  # Whether long lines are divided at a space, not skipped.

    @abc.abstractmethod
    def detects(self, beginning: Beginning) -> bool:
        """Whether a file has this format; called if no earlier format in `FORMATS` detects it."""

    @abc.abstractmethod
    def ends_document(self, line: bytes) -> bool:
        """Whether a document ends with this line, so that a block of text may end here."""

    @abc.abstractmethod
    def documents(
        self, part: TextPart, text_field: str, report: ReadReport
    ) -> Iterator[RawDocument]:
        """The documents of a part of a file; the part ends where a document ends. Problems are
        counted in the report, not raised.
        """

    def check(self, beginning: Beginning) -> None:
        """Raises UserError if this format is given for a file that certainly has another one."""
        for other in FORMATS.values():
            if other.certainly and other.detects(beginning):
                if other is not self:
                    raise UserError(
                        f"{beginning.path} is {other.certainly}, but --input_format={self.name} is "
                        f"given; {other.remedy}."
                    )
                return

    def doubt(self, beginning: Beginning) -> str:
        """The reason why this format would probably misread a file, or ""."""
        return ""

    def _divided(self, line: str) -> list[str]:
        """A line in parts of at most `line_limit` bytes, cut at spaces, or inside a longer word."""
        # SentencePiece ignores longer lines in training.
        limit = self.line_limit
        if 4 * len(line) <= limit:  # A character has at most four bytes.
            return [line]
        content, begin, found = line.encode("utf-8"), 0, []
        while len(content) - begin > limit:
            end = content.rfind(b" ", begin + 1, begin + limit)
            if end < 0:
                end = begin + limit
                while content[end] & 0xC0 == 0x80:  # Bytes 10xxxxxx continue a character.
                    end -= 1
            found.append(content[begin:end].decode("utf-8").strip())
            begin = end
        return [*found, content[begin:].decode("utf-8").strip()]


class JsonLines(Format):
    """One JSON object per line, each of which is a document. Its field "text" holds paragraphs,
    separated by blank lines, or by line breaks where the lines do not look wrapped at a fixed
    width.
    """

    name = "jsonl"
    certainly = "JSON by its name"
    remedy = "leave it at auto, or give the file another name"
    line_limit = _MAX_JSON_BYTES
    divides_long_lines = False

    def detects(self, beginning: Beginning) -> bool:
        path = beginning.path
        return path.removesuffix(compression(path)).endswith((".jsonl", ".json"))

    def ends_document(self, line: bytes) -> bool:
        return True

    def doubt(self, beginning: Beginning) -> str:
        if any(line.lstrip().startswith(b"[") for line in beginning.sample[:1]):
            return "it is a JSON array; write one object per line (jq -c '.[]')"
        return ""

    def documents(
        self, part: TextPart, text_field: str, report: ReadReport
    ) -> Iterator[RawDocument]:
        for index, line in enumerate(part.lines(report)):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                report.add("not JSON, skipped", part.where(index))
                continue
            text = record.get(text_field) if isinstance(record, dict) else None
            if not isinstance(text, str) or not text.strip():
                report.add(f"no text in field {text_field!r}, skipped", part.where(index))
                continue
            # JSON may hold an unpaired surrogate, which UTF-8 cannot.
            repaired = replace_surrogates(text)
            if repaired != text:
                report.add("half a surrogate pair, replaced by U+FFFD", part.where(index))
            yield RawDocument(list(split_paragraphs(repaired)))


class Parquet(JsonLines):
    """The rows of a Parquet file, which `streams.py` turns into lines of jsonl while it reads."""

    name = "parquet"
    certainly = "a Parquet file"

    def detects(self, beginning: Beginning) -> bool:
        return beginning.is_parquet

    def check(self, beginning: Beginning) -> None:
        super().check(beginning)
        if not beginning.is_parquet:
            raise UserError(
                f"{beginning.path} is not a Parquet file, but --input_format=parquet is given; "
                "leave it at auto."
            )


class Wikiextractor(Format):
    """<doc ...>, the title (left out), paragraphs, </doc>, as WikiExtractor writes them without
    --json.
    """

    name = "wikiextractor"

    def detects(self, beginning: Beginning) -> bool:
        return any(line.lstrip().startswith(b"<doc ") for line in beginning.sample[:1])

    def ends_document(self, line: bytes) -> bool:
        return line.lstrip().startswith(b"</doc>")

    def documents(
        self, part: TextPart, text_field: str, report: ReadReport
    ) -> Iterator[RawDocument]:
        texts: list[str] = []
        title = ""
        for line in part.lines(report):
            line = line.strip()
            if line.startswith(("<doc ", "</doc>")):
                if texts:
                    yield RawDocument(texts)
                found = _TITLE.match(line)
                texts, title = [], html.unescape(found[1]) if found else ""
            elif line:
                line = html.unescape(line)
                if texts or line != title:
                    texts += self._divided(line)
        if texts:
            yield RawDocument(texts)


class Lines(Format):
    """One sentence per line, a blank line between documents: google-research's format."""

    name = "lines"
    _are_sentences = True

    def detects(self, beginning: Beginning) -> bool:
        return True

    def ends_document(self, line: bytes) -> bool:
        return not line.strip()

    def documents(
        self, part: TextPart, text_field: str, report: ReadReport
    ) -> Iterator[RawDocument]:
        texts: list[str] = []
        for line in part.lines(report):
            line = line.strip()
            if line:
                texts += self._divided(line)
            elif texts:
                yield RawDocument(texts, self._are_sentences)
                texts = []
        if texts:
            yield RawDocument(texts, self._are_sentences)

    def doubt(self, beginning: Beginning) -> str:
        lines = beginning.sample
        has_tags = 2 * sum(bool(_TAG.search(line)) for line in lines) > len(lines)
        is_short = len(lines) < _FEW_LINES
        if has_tags and (not is_short or _HTML.match(lines[0])):
            return "most lines contain tags, as in HTML: extract its text first (pandoc -t plain)"
        wrapped = (_WRAPPED_LINE.fullmatch(line.decode("utf-8", "replace")) for line in lines)
        if 2 * sum(map(_is_json_object, lines[:_FEW_LINES])) > len(lines[:_FEW_LINES]):
            return "most lines are JSON objects: --input_format=jsonl reads them"
        if not is_short and 2 * sum(map(bool, wrapped)) > len(lines):
            return "most lines are wrapped inside a sentence: --input_format=wrapped joins them"
        return ""


def _is_json_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


class Wrapped(Format):
    """Lines wrapped at a width, as in books and man pages, with blank lines between paragraphs. A
    file is one document. It is never guessed.
    """

    name = "wrapped"

    def detects(self, beginning: Beginning) -> bool:
        return False

    def ends_document(self, line: bytes) -> bool:
        return False

    def documents(
        self, part: TextPart, text_field: str, report: ReadReport
    ) -> Iterator[RawDocument]:
        texts: list[str] = []
        lines = map(str.strip, part.lines(report))
        for has_text, group in itertools.groupby(lines, bool):
            if has_text:
                # Hyphens stay, as they may belong to the word: "well-", "known" -> "well-known".
                joined = re.sub(r"(?<=\w-)\n(?=\w)", "", "\n".join(group))
                texts += self._divided(joined.replace("\n", " "))
        if texts:
            yield RawDocument(texts)


class Paragraphs(Lines):
    """One paragraph per line, a blank line between documents: plain text without wrapped lines."""

    name = "paragraphs"
    _are_sentences = False

    def detects(self, beginning: Beginning) -> bool:
        # Lines are paragraphs if most of them continue after the end of a sentence.
        lines = [line.decode("utf-8", errors="replace") for line in beginning.sample]
        return 2 * sum(bool(_SENTENCE_END_INSIDE.search(line)) for line in lines) > len(lines)


# In the order in which they are tried: "auto" takes the first one that detects a file.
_IN_ORDER = (Parquet(), JsonLines(), Wikiextractor(), Wrapped(), Paragraphs(), Lines())
FORMATS: dict[str, Format] = {each.name: each for each in _IN_ORDER}
INPUT_FORMATS = ("auto", *reversed(FORMATS))


def examine(path: str, input_format: str, text_field: str) -> tuple[Format, str]:
    """The format of a file and its `doubt`. With "auto" it is the first format that detects the
    file. UserError if a format is given, but the file certainly has another one.
    """
    with Reader(path, text_field) as reader:
        beginning = Beginning(reader)
        if input_format in FORMATS:
            found = FORMATS[input_format]
            found.check(beginning)
        else:
            found = next(each for each in FORMATS.values() if each.detects(beginning))
        return found, found.doubt(beginning)
