"""What evaluations are made of and what they leave: benchmarks, statistics, samples, comparisons, reports.

Free of engines and of the platform: the API, the workers, the runs and the command line use the same code.
"""
