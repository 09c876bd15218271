"""What every domain's tasks share: the Celery app, transactions, and the client of the Ray cluster."""
