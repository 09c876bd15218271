"""What is in stock, in an SQLite database beside this file."""

import sqlite3


def count_items(item: str) -> int:
    """How many of an item are in stock."""
    with sqlite3.connect("shop.db") as database:
        found = database.execute("SELECT count FROM stock WHERE item = ?", [item]).fetchone()
    return found[0] if found else 0
