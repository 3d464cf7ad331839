"""English prose out of Python source: the sentences of a module's docstrings, without its code.

Docstrings mix prose with markup of four kinds (reST, numpydoc, Google style, Markdown). Paragraphs
are kept, with wrapped lines joined and markup taken off, and so are descriptions of arguments.
Examples, literal blocks, directives, tables, headings and names of types are dropped.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

MIN_WORDS, MAX_WORDS = 4, 80
MIN_LETTER_SHARE = 0.85  # Share of letters among the characters that are not spaces.
MIN_PLAIN_WORD_SHARE = 0.75  # Share of words of letters; others are names in code and numbers.

_ADMONITIONS = ("note", "warning", "tip", "important", "caution", "attention", "hint")
_TYPE_FIELDS = ("type", "rtype", "vartype")

_DIRECTIVE = re.compile(r"\.\.(?:\s+(?P<name>[\w-]+)::\s*(?P<rest>.*)|\s.*|$)")
_RULE = re.compile(r"[-=~^\"'*+#_.|: ]{3,}$")
_TABLE_ROW = re.compile(r"\||\S {3,}\S")
_HEADING = re.compile(r"(?P<name>[A-Z][\w ]{0,30}):$")
_EXAMPLE_HEADING = re.compile(r"(?i)(examples?|usage|sample usage|for example)$")
_NUMPY_PARAMETER = re.compile(r"[\w*.,\[\]`' ]+ : ")
_FIELD = re.compile(r":(?P<name>\w+)(?: [^:]*)?:(?P<rest>|\s.*)")
_LIST_ITEM = re.compile(r"(?:[-*+•]|\(?\d+[.)]|\[\d+\])\s+(?P<rest>.*)")
_GOOGLE_ARGUMENT = re.compile(r"`?\*{0,2}[\w.]+`?(?: \([^)]*\))?: (?P<rest>.*)")

_MARKUP = [
    (re.compile(r":[\w:]+:`~?(?:[\w.]*\.)?([^`<]+?)(?:\s*<[^`]*>)?`"), r"\1"),  # :class:`~a.B`
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),  # `text <link>`_
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),  # [text](link)
    (re.compile(r"\s*\[\w+\]_"), ""),  # A citation.
    (re.compile(r"`+([^`]*)`+_{0,2}"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,2}([^*\s](?:[^*]*[^*\s])?)\*{1,2}(?![\w*])"), r"\1"),
    (re.compile(r"</?\w+>"), ""),
]
_CODE = re.compile(r"[={}<>\\|$@#~^]|::|https?:|\(\)|--")
_DOT_IN_NAME = re.compile(r"(?<=\w\w)\.(?=\w)")  # keras.Input; not e.g.
_STAND_IN = "\ue000"  # Stands for such a dot while sentences are split.
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_WORD_EDGES = "\"'()[],.;:!?"


def docstrings(source: bytes) -> Iterator[str]:
    """The docstrings of a module's source in order; nothing where it is not valid Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from _docstrings_below(tree)


def _docstrings_below(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        text = ast.get_docstring(node)
        if text:
            yield text
    for block in ("body", "orelse", "handlers", "finalbody"):
        for child in getattr(node, block, ()):
            if hasattr(child, "body"):
                yield from _docstrings_below(child)


class _Paragraphs:
    """The paragraphs of a docstring, gathered one line at a time.

    Attributes:
      found: paragraphs so far, each on one line.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self._lines: list[str] = []
        self._indent = 0
        self._hanging = False  # Whether deeper lines belong to the paragraph: list items.
        self._skip_below: int | None = None  # Lines indented deeper than this are literal.
        self._in_fence = self._in_doctest = False

    def end(self) -> None:
        """Ends the paragraph."""
        if self._lines:
            self.found.append(" ".join(self._lines))
        self._lines = []

    def add(self, line: str) -> None:
        """Takes the next line of the docstring."""
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if text.startswith("```"):
            self.end()
            self._in_fence = not self._in_fence
        elif self._in_fence:
            return
        elif not text:
            self.end()
            self._in_doctest = False
        elif not self._is_literal(text, indent):
            self._add_text(text, indent)

    def _is_literal(self, text: str, indent: int) -> bool:
        """Whether a line belongs to an example or a literal block."""
        if self._skip_below is not None and indent > self._skip_below:
            return True
        self._skip_below = None
        if text.startswith(">>>"):
            self.end()
            self._in_doctest = True
        return self._in_doctest

    def _add_text(self, text: str, indent: int) -> None:
        if _RULE.fullmatch(text):  # Underlines the line before, which is a title.
            self._lines = self._lines[:-1]
            self.end()
        elif _TABLE_ROW.search(text) or _NUMPY_PARAMETER.match(text):
            self.end()
        elif directive := _DIRECTIVE.fullmatch(text):
            self.end()
            if directive["name"] in _ADMONITIONS:
                self._start(directive["rest"], indent, hanging=True)
            else:
                self._skip_below = indent
        elif heading := _HEADING.fullmatch(text):
            self.end()
            if _EXAMPLE_HEADING.match(heading["name"]):
                self._skip_below = indent
        elif field := _FIELD.fullmatch(text):
            kept = field["name"] not in _TYPE_FIELDS
            self._start(field["rest"].strip() if kept else "", indent, hanging=kept)
        elif item := _LIST_ITEM.fullmatch(text) or _GOOGLE_ARGUMENT.fullmatch(text):
            self._start(item["rest"], indent, hanging=True)
        elif self._lines and (indent == self._indent or (self._hanging and indent > self._indent)):
            self._lines.append(text)
        else:
            self._start(text, indent, hanging=False)
        if text.endswith("::"):
            self._skip_below = indent

    def _start(self, text: str, indent: int, hanging: bool) -> None:
        self.end()
        self._lines = [text] if text else []
        self._indent, self._hanging = indent, hanging


def paragraphs(docstring: str) -> list[str]:
    """The paragraphs of a docstring, each on one line and without markup."""
    gathered = _Paragraphs()
    for line in docstring.expandtabs().splitlines():
        gathered.add(line)
    gathered.end()
    return [_plain(paragraph) for paragraph in gathered.found]


def _plain(text: str) -> str:
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def is_prose(sentence: str) -> bool:
    """Whether a sentence reads as English: complete, of words rather than of names and signs."""
    words = [word.strip(_WORD_EDGES) for word in sentence.split()]
    letters = sum(map(str.isalpha, sentence))
    return (
        MIN_WORDS <= len(words) <= MAX_WORDS
        and sentence.lstrip("\"'(")[:1].isupper()
        and sentence.rstrip("\"')")[-1:] in (".", "!", "?")
        and not _CODE.search(sentence)
        and letters >= MIN_LETTER_SHARE * len("".join(words))
        and sum(map(bool, map(_PLAIN_WORD.fullmatch, words))) >= MIN_PLAIN_WORD_SHARE * len(words)
        and sentence.count("(") == sentence.count(")")
    )


def _sentences(paragraph: str) -> list[str]:
    import sentencex

    # sentencex takes the dot of a name like keras.Input for the end of a sentence.
    parts = sentencex.segment("en", _DOT_IN_NAME.sub(_STAND_IN, paragraph))
    return [part.strip().replace(_STAND_IN, ".") for part in parts]


def prose_sentences(source: bytes) -> list[str]:
    """The sentences of a module's docstrings that read as prose, in order."""
    return [
        sentence
        for docstring in docstrings(source)
        for paragraph in paragraphs(docstring)
        for sentence in _sentences(paragraph)
        if is_prose(sentence)
    ]
