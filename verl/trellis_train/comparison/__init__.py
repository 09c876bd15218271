"""Other trainers on the platform's data, to be compared with: for benchmarks, never for jobs."""
