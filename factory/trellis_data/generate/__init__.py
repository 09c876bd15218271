"""Rows that a model behind a chat endpoint writes: new instructions with answers, or the best of many."""
