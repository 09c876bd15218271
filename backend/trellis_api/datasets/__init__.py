"""Datasets: uploaded files, checked row by row and kept as Parquet."""
