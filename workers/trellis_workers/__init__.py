"""Celery workers: hand jobs to Ray and settle them."""
