"""Finding the right tool among a thousand: an encoder of queries and tools, trained by contrast."""
