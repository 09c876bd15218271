"""A tool that counts items in an SQLite database next to this file."""

import sqlite3


def count_items(item: str) -> int:
    """Count how many of an item are in stock."""
    with sqlite3.connect("shop.db") as database:
        found = database.execute("SELECT count FROM stock WHERE item = ?", [item]).fetchone()
    return found[0] if found else 0
