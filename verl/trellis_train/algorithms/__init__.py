"""Algorithms that verl lacks, a module each, registered with verl when it is imported.

A recipe names its module as ``actor_rollout_ref.model.external_lib``. verl imports it in the workers, which
compute losses; ``hooks.algorithms`` imports it in the trainer, which computes advantages.
"""
