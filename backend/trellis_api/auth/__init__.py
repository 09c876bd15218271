"""Who may use the platform: the admin token, login links, browser sessions and job tokens."""
