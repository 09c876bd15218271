"""Time, memory and disk that a launch will take."""
