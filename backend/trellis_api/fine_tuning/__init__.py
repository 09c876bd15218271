"""Fine-tuning as clients of OpenAI's ask for it: their files are our datasets, their jobs our jobs."""
