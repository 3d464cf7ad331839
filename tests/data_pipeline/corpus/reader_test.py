"""Lines one at a time and many at once."""

import pytest

from data_pipeline.corpus.reader import Reader

MARK = b"\xef\xbb\xbf"


@pytest.fixture
def opened(tmp_path):
    """content -> a reader of a file with this content."""

    def open_reader(content: bytes) -> Reader:
        (tmp_path / "a.txt").write_bytes(content)
        return Reader(str(tmp_path / "a.txt"))

    return open_reader


@pytest.mark.parametrize(
    "content, limit, expected",
    [
        (b"a\n\nbcdefg\nlast", 4, [b"a\n", b"\n", b"bcde", b"fg\n", b"last", b"", b""]),
        (b"abcdefghijk\nl", 5, [b"abcde", b"fghij", b"k\n", b"l"]),
    ],
)
def test_lines_one_at_a_time(opened, content, limit, expected):
    """Of the second one, the first part is only half there when it is asked for."""
    with opened(content) as reader:
        assert [reader.read_line(limit) for _ in expected] == expected


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_the_end_of_a_line_within_what_was_read_ahead(opened, limit):
    """Of a short line the first bytes were read in search of a byte order mark."""
    with opened(b"a\nb\nccc") as reader:
        found = list(iter(lambda: reader.read_line(limit), b""))
    assert b"".join(found) == b"a\nb\nccc" and max(map(len, found)) <= limit
    assert limit == 1 or found[:2] == [b"a\n", b"b\n"]


def test_a_byte_order_mark_is_no_text(opened):
    with opened(MARK + b"a\nb\n") as reader:
        assert reader.read_lines(100, 100) == b"a\nb\n"
    with opened(b"a") as reader:
        assert reader.read_line(9) == b"a"
    with opened(b"x" + MARK + b"\n") as reader:
        assert reader.read_line(9) == b"x" + MARK + b"\n"


@pytest.mark.parametrize(
    "size, limit, expected, then",
    [
        (100, 100, b"a\nbbbb\ncc\n", b"d"),
        (100, 6, b"a\nbbbb\ncc\n", b"d"),
        (100, 5, b"a\n", b"bbbb\n"),
        (100, 2, b"", b"a\n"),
        (7, 100, b"a\nbbbb\n", b"cc\n"),
        (8, 100, b"a\nbbbb\n", b"cc\n"),
        (1, 100, b"a\n", b"bbbb\n"),
    ],
)
def test_many_lines_at_once(opened, size, limit, expected, then):
    """Whole lines within `size` bytes, and none that is too long; then reading goes on there."""
    with opened(b"a\nbbbb\ncc\nd") as reader:
        assert reader.read_lines(size, limit) == expected
        assert reader.read_line(100) == then


def test_ways_of_reading_alternate(opened):
    content = b"".join(b"line %d\n" % i for i in range(50))
    with opened(content) as reader:
        found = b""
        for i in range(100):
            found += reader.read_lines(30, 100) if i % 3 else reader.read_line(100)
    assert found == content
