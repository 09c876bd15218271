"""A fault campaign: a platform under load is broken at random, as a seed fixes, and looked over each time."""
