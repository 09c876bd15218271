"""Sweeps: one training many times, with parameters or seeds that vary; each run is an ordinary job."""
