"""Files of models and checkpoints, one by one or as one archive, streamed and resumable."""
