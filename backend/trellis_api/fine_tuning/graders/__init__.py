"""Graders of OpenAI's reinforcement fine-tuning as rewards of ours."""
