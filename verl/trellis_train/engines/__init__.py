"""The trainers that recipes run on, one module each: ``python -m trellis_train.engines.<name>``."""
