"""Reports on evaluations: Markdown, HTML that needs nothing else, and PDF."""
