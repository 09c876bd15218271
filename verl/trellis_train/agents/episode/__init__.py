"""What all agents' episodes have in common: the record of their turns and the calls in their texts."""
