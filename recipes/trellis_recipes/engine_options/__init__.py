"""The allow-list of engine options: which texts, lists and mappings a person may hand to an engine.

An engine's options can name files, modules, classes, plugins, addresses and templates, and the engine runs
with the platform's rights. So every option that takes more than a number is classified in a file beside this
one; what is not classified is refused.
"""

from trellis_recipes.engine_options.check import Problem, find_problem, rule_of
from trellis_recipes.engine_options.rules import Rule, RuleFile, find_rule, load_rules

__all__ = ["Problem", "Rule", "RuleFile", "find_problem", "find_rule", "load_rules", "rule_of"]
