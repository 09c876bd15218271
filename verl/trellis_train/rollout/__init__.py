"""How responses travel from the rollout server into the training batch, with few hops between processes."""
