"""Resumable uploads, after the tus protocol."""
