"""The data factory against datatrove and text-dedup: time, memory, and what each of them finds."""
