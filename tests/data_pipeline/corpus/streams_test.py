"""Lines one at a time and many at once; what is no text is refused by its content."""

import bz2
import gzip
import io
import lzma
import pickle
import sqlite3
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.streams import Reader
from data_pipeline.errors import UserError

TEXT = "Some text in a line.\nAnother line of it.\n\n" * 50


def read(path, input_format="lines", report=None):
    return list(read_documents(Corpus(str(path), input_format), report))


def zipped(tmp_path):
    with zipfile.ZipFile(tmp_path / "made", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", TEXT)


def tarred(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    with tarfile.open(tmp_path / "made", "w") as archive:
        archive.add(tmp_path / "a.txt", "a.txt")


def database(tmp_path):
    with sqlite3.connect(tmp_path / "made") as connection:
        connection.execute("CREATE TABLE a (text TEXT)")


def arrow_file(tmp_path, new=pa.ipc.new_file):
    table = pa.table({"text": [TEXT]})
    with new(str(tmp_path / "made"), table.schema) as writer:
        writer.write_table(table)


def arrow_stream(tmp_path):
    arrow_file(tmp_path, pa.ipc.new_stream)


def array(tmp_path):
    with open(tmp_path / "made", "wb") as file:
        np.save(file, np.arange(1000))


def picture(tmp_path):
    import matplotlib.image

    matplotlib.image.imsave(tmp_path / "made", np.zeros([9, 9]), format="png")


def pickled(tmp_path):
    (tmp_path / "made").write_bytes(pickle.dumps(TEXT.split()))


def document(tmp_path):
    (tmp_path / "made").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\n")


@pytest.mark.parametrize(
    "make, kind, name",
    [
        (zipped, "a zip archive", "made"), (zipped, "a zip archive", "made.jsonl"),
        (tarred, "a tar archive", "made.txt"), (database, "an SQLite data base", "made.txt"),
        (arrow_file, "an Arrow file", "made"), (arrow_stream, "an Arrow stream", "made.txt"),
        (array, "a NumPy array", "made.jsonl"), (picture, "a picture", "made.txt"),
        (pickled, "a Python pickle", "made"), (document, "a PDF document", "made.txt"),
    ],
)  # fmt: skip
def test_files_of_other_kinds_are_named(tmp_path, make, kind, name):
    make(tmp_path)
    (tmp_path / "made").rename(tmp_path / name)
    with pytest.raises(UserError, match=f"{name} is {kind}.*, not text; give text, jsonl or"):
        read(tmp_path / name, "auto")
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    with pytest.raises(UserError, match=f"{name}.gz is {kind}"):
        read(tmp_path / f"{name}.gz", "auto")


COMPRESSIONS = [
    (gzip.compress, "gz"), (bz2.compress, "bz2"), (lzma.compress, "xz"),
    (zstandard.ZstdCompressor().compress, "zst"),
]  # fmt: skip


@pytest.mark.parametrize("compress, extension", COMPRESSIONS)
def test_compressed_files_without_their_extension(tmp_path, compress, extension):
    (tmp_path / "a.txt").write_bytes(compress(TEXT.encode()))
    with pytest.raises(UserError, match=rf"a.txt contains compressed data; .*end in \.{extension}"):
        read(tmp_path / "a.txt")
    (tmp_path / "b.gz").write_bytes(gzip.compress((tmp_path / "a.txt").read_bytes()))
    with pytest.raises(UserError, match=r"b.gz contains compressed data inside \.gz"):
        read(tmp_path / "b.gz")


@pytest.mark.parametrize("start", ["PAR", "BZhang came.", "Rar!", "GIF8", "PK", "Obj", "ustar"])
def test_text_that_begins_like_something_else_is_text(tmp_path, start):
    (tmp_path / "a.txt").write_text(f"{start}\n{TEXT}")
    assert read(tmp_path / "a.txt")[0][0] == start


@pytest.mark.parametrize("input_format", ["auto", "lines", "jsonl"])
def test_random_bytes_are_no_text(tmp_path, input_format):
    (tmp_path / "a.txt").write_bytes(np.random.default_rng(0).bytes(300_000))
    with pytest.raises(UserError, match=r"a.txt is not text: \d+ of \d+ lines contain NUL bytes"):
        read(tmp_path / "a.txt", input_format)


def test_garbage_behind_good_text_is_found(tmp_path):
    noise = np.random.default_rng(0).bytes(3_000_000)
    (tmp_path / "a.txt").write_bytes(TEXT.encode() * 500 + noise)
    with pytest.raises(UserError, match="a.txt is not text"):
        read(tmp_path / "a.txt")


@pytest.mark.parametrize("encoding, hint", [("latin-1", ""), ("gb18030", ".*GB18030")])
def test_other_encodings_get_the_command_that_converts(tmp_path, encoding, hint):
    text = "Il était là, déjà.\n你好，世界。\n" if encoding == "gb18030" else "Il était là, déjà.\n"
    (tmp_path / "a.txt").write_bytes((text * 30).encode(encoding))
    with pytest.raises(UserError, match=rf"a.txt is not UTF-8.*iconv -f LATIN1{hint}"):
        read(tmp_path / "a.txt")


def test_utf_16_without_a_mark(tmp_path):
    (tmp_path / "a.txt").write_bytes(TEXT.encode("utf-16-le"))
    with pytest.raises(UserError, match="UTF-16 without a byte order mark"):
        read(tmp_path / "a.txt")


@pytest.mark.parametrize("extension", ["", ".gz"])
def test_carriage_returns_alone_end_lines(tmp_path, extension):
    content = TEXT.replace("\n", "\r").encode()
    path = tmp_path / f"a.txt{extension}"
    path.write_bytes(gzip.compress(content) if extension else content)
    assert read(path) == [["Some text in a line.", "Another line of it."]] * 50
    assert len(read(path, "auto")) == 50


def test_carriage_returns_in_other_files_stay(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"One\rline.\nTwo.\r\n")
    assert read(tmp_path / "a.txt") == [["One\rline.", "Two."]]


def test_a_long_file_of_carriage_returns(tmp_path):
    """Beyond what is looked at first, and cut in blocks as any other."""
    content = io.BytesIO()
    for i in range(60_000):
        content.write(b"This is line %d of a file.\r" % i)
    (tmp_path / "a.txt").write_bytes(content.getvalue())
    found = [line for document in read(tmp_path / "a.txt") for line in document]
    assert found == [f"This is line {i} of a file." for i in range(60_000)]


@pytest.mark.parametrize("compress, extension", COMPRESSIONS)
def test_compression_does_not_decide_what_ends_a_line(tmp_path, compress, extension):
    """A carriage return inside a first line that is longer than a decompressor shows at once."""
    content = b"A word\ror two. " * 1300 + b"\n" + TEXT.encode()
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / f"b.txt.{extension}").write_bytes(compress(content))
    plain = read(tmp_path / "a.txt")
    assert "\r" in plain[0][0] and len(plain[0][0]) > 20_000 - 1500
    assert read(tmp_path / f"b.txt.{extension}") == plain


def test_many_small_files_of_another_encoding(tmp_path):
    """None has enough lines to tell by itself; a few of them among good ones are warnings."""
    for i in range(20):
        (tmp_path / f"{i:02d}.txt").write_bytes("Déjà vu là.\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"00.txt \(and 19 more.*\) is not UTF-8: 20 of 20.*LATIN1"):
        read(tmp_path / "*.txt")
    for i in range(1, 12):
        (tmp_path / f"{i:02d}.txt").write_text("Seen already.\n")
    report = ReadReport()
    assert len(read(tmp_path / "*.txt", report=report)) == 20
    assert report.problems == {"invalid UTF-8, replaced by U+FFFD": 9}


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
    with opened(BYTE_ORDER_MARK + b"a\nb\n") as reader:
        assert reader.read_lines(100, 100) == b"a\nb\n"
    with opened(b"a") as reader:
        assert reader.read_line(9) == b"a"
    with opened(b"x" + BYTE_ORDER_MARK + b"\n") as reader:
        assert reader.read_line(9) == b"x" + BYTE_ORDER_MARK + b"\n"


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
