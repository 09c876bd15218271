"""Python processes that begin with everything imported: forked from one that has imported it."""
