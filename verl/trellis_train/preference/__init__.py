"""Learning from preferences with TRL's trainers: the DPO family and reward models."""
