"""Test the columns of the sinks that have columns."""

import msgspec
import pytest

from kadcrawl.crawl.output.outputs import PageLine, RecordLine
from kadcrawl.sinks.tables import TABLES


@pytest.mark.parametrize(("table", "line"), [("pages", PageLine), ("records", RecordLine)])
def test_whatever_a_log_line_may_say_has_a_column(table: str, line: type[msgspec.Struct]) -> None:
    assert {column.name for column in TABLES[table]} == {*line.__struct_fields__, "more"}
