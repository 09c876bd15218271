"""Which dialogs are worth training on, and which old ones are trained on again."""
