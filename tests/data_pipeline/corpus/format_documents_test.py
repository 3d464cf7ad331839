"""Parts of each format to documents: literal text before and after, and what is reported."""

import pytest

from data_pipeline.corpus.blocks import TextBlock
from data_pipeline.corpus.documents import Corpus, raw_documents
from data_pipeline.corpus.formats import RawDocument
from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.text_part import TextPart


def read(content, input_format="lines", first_line=1, problems=(), text_field="text"):
    """Texts of the documents of a part, and "line: problem" of its problems."""
    content = content.encode() if isinstance(content, str) else content
    part = TextPart("a.txt", input_format, first_line, content, problems)
    report = ReadReport()
    found = list(
        raw_documents(TextBlock(0, 0, [part], 0), Corpus((), text_field=text_field), report)
    )
    assert all(document.are_sentences == (input_format == "lines") for document in found)
    return [document.texts for document in found], [
        example.removeprefix("a.txt:") for example in report.examples
    ]


@pytest.mark.parametrize("input_format", ["lines", "paragraphs"])
@pytest.mark.parametrize(
    "content, expected",
    [
        ("", []),
        ("One.\nTwo.\n\nThree.\n", [["One.", "Two."], ["Three."]]),
        ("\n \nOne. \r\n\r\n\t\r\nTwo.", [["One."], ["Two."]]),
        ("One\rtwo.\n", [["One\rtwo."]]),
    ],
)
def test_blank_lines_divide_documents(input_format, content, expected):
    assert read(content, input_format) == (expected, [])


def test_wikiextractor_leaves_titles_out():
    content = (
        '<doc id="1" url="u" title="Tom &amp; Jerry">\nTom &amp; Jerry\n\n'
        "A &lt;b&gt; cat.\n\nTom &amp; Jerry\n</doc>\n"
        "Between.\n</doc>\n"
        '<doc id="2">\n\n</doc>\n<doc id="3" title="B">\nC.\n'
    )
    documents, problems = read(content, "wikiextractor")
    assert documents == [["A <b> cat.", "Tom & Jerry"], ["Between."], ["C."]] and not problems


def test_json_holds_paragraphs_in_a_field():
    content = '{"text": "One.\\n\\nTwo."}\n\n{"body": "Three.", "text": ""}\n'
    skipped = "3: no text in field 'text', skipped"
    assert read(content, "jsonl") == ([["One.", "Two."]], [skipped])
    documents, problems = read(content, "jsonl", first_line=11, text_field="body")
    assert documents == [["Three."]]
    assert problems == ["11: no text in field 'body', skipped"]


@pytest.mark.parametrize(
    "line, problem",
    [
        ("{broken", "not JSON, skipped"),
        ("[" * 100_000, "not JSON, skipped"),
        ("[1]", "no text in field 'text', skipped"),
        ('"text"', "no text in field 'text', skipped"),
        ('{"text": null}', "no text in field 'text', skipped"),
        ('{"text": ["a"]}', "no text in field 'text', skipped"),
    ],
)
def test_json_without_text_is_named_with_its_line(line, problem):
    documents, problems = read(f'{{"text": "a"}}\n{line}\n{{"text": "b"}}', "jsonl", first_line=7)
    assert documents == [["a"], ["b"]] and problems == [f"8: {problem}"]


def test_halves_of_surrogate_pairs_are_replaced():
    documents, problems = read('{"text": "a\\ud83d b"}', "jsonl")
    assert documents == [["a\ufffd b"]]
    assert problems == ["1: half a surrogate pair, replaced by U+FFFD"]


def test_bytes_that_are_no_text_are_repaired_and_named():
    content = b"fine\nd\xe9j\xe0\nnul\0\n\xff\0\nbell\a\nfine\nfine\nfine\nfine\n"
    documents, problems = read(content, first_line=5)
    assert documents == [["fine", "d\ufffdj\ufffd", "nul", "\ufffd", "bell\a", *["fine"] * 4]]
    assert problems == [
        "6: invalid UTF-8, replaced by U+FFFD",
        "7: NUL bytes, replaced by spaces",
        "8: invalid UTF-8, replaced by U+FFFD",
        "8: NUL bytes, replaced by spaces",
    ]


def test_problems_of_reading_come_first_and_parts_in_order():
    parts = [
        TextPart("a.txt", "lines", 1, b"One.\n", [("a.txt:3", "line divided")]),
        TextPart("b.txt", "paragraphs", 1, b"Two. Three.\n"),
        TextPart("c.txt", "jsonl", 1, b'{"text": "Four."}\n'),
    ]
    report = ReadReport()
    found = list(raw_documents(TextBlock(0, 0, parts, 0), Corpus(()), report))
    assert found == [
        RawDocument(["One."], True),
        RawDocument(["Two. Three."], False),
        RawDocument(["Four."], False),
    ]
    assert report.examples == ["a.txt:3: line divided"]


def test_wrapped_lines_are_joined_to_paragraphs_of_one_document():
    text = "It was a well-\nknown fact. Be\n  brief.\n\n\nA - dash -\nends it.\n"
    expected = ["It was a well-known fact. Be brief.", "A - dash - ends it."]
    assert read(text, "wrapped") == ([expected], [])
    assert read("\n", "wrapped") == ([], [])
