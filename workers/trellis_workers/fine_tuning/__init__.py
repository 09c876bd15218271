"""Fine-tuning jobs as the workers see them: those whose files have been read are begun."""
