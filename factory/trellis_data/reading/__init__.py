"""Raw files and their rows: local, on a hub or in S3."""
