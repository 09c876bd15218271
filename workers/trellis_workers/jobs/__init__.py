"""Tasks that move training jobs along: launch, reconcile, stop, purge."""
