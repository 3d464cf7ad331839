"""Collects the lines of one file into parts of blocks, which end only where a document ends."""

from __future__ import annotations

from data_pipeline.corpus.formats import Format
from data_pipeline.corpus.streams import Reader
from data_pipeline.corpus.text_part import TextPart

MAX_DOCUMENT_BYTES = 16 << 20
_CHARACTER_BYTES = 4  # The longest character in UTF-8.


class PartBuilder:
    """Collects the lines of one file, and tracks where documents end."""

    def __init__(self, path: str, input_format: Format, doubt: str = "") -> None:
        self._path, self._format = path, input_format
        self.next_line = 1  # Number of the line that comes next, or is continued.
        self.ends_document = True  # Whether a document ends with the last line.
        self.has_text = False  # Whether any line so far was not blank.
        # To bound memory, a line longer than the format's limit is read in pieces.
        self.in_long_line = False  # Whether the next piece continues the last line.
        self.held_back = b""  # Bytes after the last space, kept for the next part.
        self._restart()
        if doubt:
            self._problems.append((path, doubt))

    def _restart(self) -> None:
        self._lines: list[bytes] = []
        self._problems: list[tuple[str, str]] = []
        self._first_line = self.next_line
        self.bytes = 0  # Number of bytes collected since the last part.

    def add_from(self, reader: Reader, size: int) -> bool:
        """Adds about `size` bytes of whole lines, or (a piece of) one line; False at the end."""
        lines, limit = b"", self._format.line_limit
        if size > 0 and not self.in_long_line:
            lines = reader.read_lines(size, limit)
        if lines:
            self._add_lines(lines)
            return True
        line = reader.read_line(limit)
        if line:
            self._add(line)
        return bool(line)

    def is_full(self, room: int) -> bool:
        """Whether a part that should have `room` bytes ends here."""
        return self.bytes >= room and (
            self.ends_document or self.bytes >= room + MAX_DOCUMENT_BYTES
        )

    def _add_lines(self, lines: bytes) -> None:
        """Adds whole lines, none longer than the limit."""
        self._lines.append(lines)
        self.bytes += len(lines)
        self.next_line += lines.count(b"\n")
        self.has_text = self.has_text or not lines.isspace()
        last_line = lines[lines.rfind(b"\n", 0, -1) + 1 :]
        self.ends_document = self._format.ends_document(last_line)

    def _add(self, line: bytes) -> None:
        """Adds one line, or a piece of a line that is longer than the limit."""
        is_whole = line.endswith(b"\n") or len(line) < self._format.line_limit
        if self.in_long_line or not is_whole:
            line = self._long_line(line, is_whole)
        line, self.held_back = self.held_back + line, b""
        if not is_whole and line:
            line = self._cut_at_space(line)
        self._lines.append(line)
        self.bytes += len(line)
        self.next_line += 1 if is_whole else 0
        self.ends_document = is_whole and self._format.ends_document(line)
        self.has_text = self.has_text or not line.isspace()

    def _long_line(self, line: bytes, is_whole: bool) -> bytes:
        """The bytes to keep of a piece of a long line: all, or only the end if it is skipped."""
        if not self.in_long_line:
            action = "divided" if self._format.divides_long_lines else "skipped"
            self._report(f"line longer than {self._format.line_limit >> 20} MB, {action}")
        self.in_long_line = not is_whole
        if self._format.divides_long_lines:
            return line
        return b"\n" if is_whole else b""

    def _cut_at_space(self, line: bytes) -> bytes:
        """The line up to its last space; the rest is held back for the next part."""
        cut = line.rfind(b" ") + 1
        if not cut:  # No space: cut inside the word, but not inside a UTF-8 character.
            cut = len(line)
            for size in range(1, min(_CHARACTER_BYTES, cut) + 1):
                if line[-size] & 0xC0 != 0x80:  # Bytes 10xxxxxx continue a character.
                    cut -= size
                    break
        self.held_back = line[cut:]
        return line[:cut]

    def _report(self, problem: str) -> None:
        self._problems.append((f"{self._path}:{self.next_line}", problem))

    def take(self, final: bool) -> TextPart:
        """The lines since the last call, as a part; `final`: whether the file ends with it."""
        if final:
            self._lines.append(self.held_back)
            if not self.has_text:
                self._problems.append((self._path, "file without text"))
        elif not self.ends_document:
            self._report(f"document longer than {MAX_DOCUMENT_BYTES >> 20} MB, divided")
        part = TextPart(
            self._path, self._format.name, self._first_line, b"".join(self._lines), self._problems
        )
        self._restart()
        return part
