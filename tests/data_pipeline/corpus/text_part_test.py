"""A few bad lines are to be repaired; text that is mostly bad is refused with its numbers."""

import pytest

from data_pipeline.corpus.text_part import TextPart, check_are_text, check_small_files, decode_clean
from data_pipeline.errors import UserError

GOOD, BINARY, LATIN_1 = b"good", b"\0", b"d\xe9j\xe0"


def test_control_characters_that_text_does_not_hold():
    """White space (9 to 13) and what terminals are told with (27 to 31) may be there."""
    allowed = [code for code in range(0x80) if decode_clean(f"a{chr(code)}b".encode())]
    assert allowed == [*range(9, 14), *range(27, 127)]
    assert decode_clean(b"a\tb") == "a\tb"


def test_faultless_text_is_utf_8():
    assert decode_clean("é\x85 日".encode()) == "é\x85 日"
    assert decode_clean(LATIN_1) is None and decode_clean(b"") == ""


@pytest.mark.parametrize(
    "lines",
    [[], [BINARY] * 2, [LATIN_1] * 2, [BINARY] * 3 + [GOOD] * 3, [LATIN_1] * 50 + [GOOD] * 50],
)
def test_few_lines_or_no_more_than_half_are_repaired(lines):
    check_are_text(lines, "a.txt")


@pytest.mark.parametrize(
    "lines, message",
    [
        ([BINARY] * 3, "a.txt is not text: 3 of 3 lines contain NUL bytes or control characters."),
        ([BINARY] * 3 + [GOOD] * 2, "a.txt is not text: 3 of 5 lines contain"),
        ([BINARY] * 3 + [b" \n"] * 9, "a.txt is not text: 3 of 3 lines contain"),
        ([LATIN_1] * 3, "a.txt is not UTF-8: 3 of 3 lines cannot be read. If it is Latin-1, "),
        ([BINARY, LATIN_1] * 3 + [BINARY], "a.txt is not text: 4 of 7 lines contain"),
        ([BINARY * 2001], "a.txt is not text: 3 of 3 kilobytes contain"),
        ([b"\xe9" * 2001], "a.txt is not UTF-8: 3 of 3 kilobytes cannot"),
    ],
)
def test_what_is_mostly_wrong_is_refused(lines, message):
    with pytest.raises(UserError) as error:
        check_are_text(lines, "a.txt")
    assert str(error.value).startswith(message)
    if "UTF-8:" in message:
        assert "iconv -f LATIN1 -t UTF-8 a.txt > NEW" in str(error.value)


def test_one_fault_in_long_lines_is_no_reason():
    """They are looked at in kilobytes, which do not divide a character."""
    for character in ("é", "日", "😀"):
        long = b"a" + character.encode() * 2000
        check_are_text([long + b"\xff"], "a.txt")
        check_are_text([long + b"\0"], "a.txt")
    check_are_text([BINARY * 2000], "a.txt")


def parts(*contents):
    return [TextPart(f"{i}.txt", "lines", 1, content) for i, content in enumerate(contents)]


def test_small_files_are_looked_at_together():
    check_small_files(parts(b"\n".join([LATIN_1] * 9)))  # By itself: whoever reads it looks at it.
    check_small_files(parts(LATIN_1, GOOD + b"\n" + LATIN_1, GOOD, GOOD))
    with pytest.raises(UserError, match=r"^1.txt is not UTF-8: 3 of 4 lines"):
        check_small_files(parts(GOOD, b"\n".join([LATIN_1] * 3)))
    with pytest.raises(
        UserError, match=r"^1.txt \(and 2 more of the files beside it\) is not text: 3 of 5 lines"
    ):
        check_small_files(parts(GOOD, BINARY, BINARY, GOOD, BINARY))
