"""From an uploaded file to typed Parquet: file kind, encoding, rows, column types, data format."""
