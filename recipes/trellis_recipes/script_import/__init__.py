"""Reads a shell script that starts verl, and turns it into a job's recipe, parameters and overrides.

The script is read, never run: assignments, defaults and arithmetic are worked out, commands are not.
"""

from trellis_recipes.script_import.convert import BadScript, ImportedScript, LeftOut, import_script

__all__ = ["BadScript", "ImportedScript", "LeftOut", "import_script"]
