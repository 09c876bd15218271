"""The data factory: from raw files to clean, deduplicated, split and versioned rows, in a stream.

Free of the platform: the API, the workers, the command line and Ray Data run the same code.
"""
