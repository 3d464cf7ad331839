"""A table in Markdown, and its place in a document."""

import pytest

from data_pipeline.errors import UserError
from experiments.tables import markdown_table, replace_table


def test_a_table_is_replaced_where_it_is_marked(tmp_path):
    table = markdown_table([{"task": "rte", "score": "57.0"}])
    assert table == "| task | score |\n| --- | ---: |\n| rte | 57.0 |\n"
    document = tmp_path / "weights.md"
    document.write_text("a\n<!-- table: glue -->\nold\n<!-- end of table -->\nb\n")
    for _ in range(2):  # The second time there is the new one.
        replace_table(document, "glue", table)
    assert document.read_text() == (
        f"a\n<!-- table: glue -->\n\n{table}\n<!-- end of table -->\nb\n"
    )
    with pytest.raises(UserError, match="has no place for a table: <!-- table: other -->"):
        replace_table(document, "other", table)
