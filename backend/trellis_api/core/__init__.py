"""What every domain stands on: settings, database session, errors, paging. No domain nouns."""
