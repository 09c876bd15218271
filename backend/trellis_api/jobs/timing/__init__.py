"""When the steps of a job ended, what their time went into, and what the machines did meanwhile."""
