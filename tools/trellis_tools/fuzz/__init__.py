"""Generated requests to a temporary platform: none may fail inside, or be answered without a token."""
