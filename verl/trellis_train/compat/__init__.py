"""What is changed in verl, vLLM, TransferQueue, torch and TRL: one entry a symbol, checked by its source.

``change`` defines an entry, ``catalogue`` lists all, ``source`` finds a symbol without importing it,
``records`` keeps what each looked like, ``checking`` compares, ``applying`` installs.
``python -m trellis_train.compat`` prints the table (docs/upgrading.md).
"""
