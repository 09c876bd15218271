"""Checks, tests, benchmarks, fault campaigns and generated files of a checkout, apart from the product."""
