"""What training on uses of tools does with its rows before an engine reads them."""
