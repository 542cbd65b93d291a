"""A batch as a Parquet file (pyarrow), with the columns of `tables`: a row for each line, in bounded row groups.

Tests: tests/sinks/test_sinks.py
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kadcrawl.sinks.batch import DocumentBatch
from kadcrawl.sinks.tables import TABLES, row

ROW_GROUP_ROWS = 5000
"""Rows of a row group. A reader holds one row group at a time, some megabytes."""
_TYPES = {"text": pa.string(), "integer": pa.int64(), "json": pa.string()}


def parquet(batch: DocumentBatch) -> tuple[bytes, Sequence[str]]:
    """Return the batch as the bytes of a Parquet file, with the reasons for refused documents (`Encode`)."""
    documents, refused = batch.keyed_documents()
    columns = TABLES[batch.table]
    schema = pa.schema([(column.name, _TYPES[column.kind]) for column in columns])
    values: Any = zip(*(row(batch.table, key, document) for key, document in documents), strict=True)
    arrays = list(values) or [()] * len(columns)
    filled = [pa.array(each, field.type) for each, field in zip(arrays, schema, strict=True)]
    table = pa.Table.from_arrays(filled, schema=schema)
    file = BytesIO()
    pq.write_table(table, file, row_group_size=ROW_GROUP_ROWS, compression="zstd")
    return file.getvalue(), refused
