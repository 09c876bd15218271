"""Reports: evaluations written down to be read and sent on."""
