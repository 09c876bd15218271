"""A fault campaign: a platform under load, broken at random in ways that a seed fixes, and looked over after each."""
