"""From files of any kind to rows with types: compression, encoding, kind, rows, columns, shards."""
