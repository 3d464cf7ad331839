"""Problems are counted, and the first twenty named."""

from data_pipeline.corpus.report import ReadReport


def test_all_are_counted_and_the_first_named():
    report = ReadReport()
    for line in range(1, 31):
        report.add("not JSON, skipped" if line % 3 else "odd", f"a.jsonl:{line}")
    assert report.problems == {"not JSON, skipped": 20, "odd": 10}
    assert len(report.examples) == 20
    assert report.examples[0] == "a.jsonl:1: not JSON, skipped"
    assert report.examples[2] == "a.jsonl:3: odd"
    assert report.examples[-1] == "a.jsonl:20: not JSON, skipped"
