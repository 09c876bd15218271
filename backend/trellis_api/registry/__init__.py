"""Named models: versions, aliases such as production, promotions with a gate, and the way back."""
