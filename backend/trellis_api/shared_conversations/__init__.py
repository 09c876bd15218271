"""Conversations of the playground behind links."""
