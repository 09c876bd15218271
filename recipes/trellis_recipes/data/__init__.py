"""From rows as a dataset holds them to the form that a trainer reads; pure, so that the API may show it."""
