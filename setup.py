"""Leaves `trellis_tools` out of wheels; an editable install of a checkout finds it.

Everything else about the distribution is in pyproject.toml.
"""

from setuptools import setup
from setuptools.command.build_py import build_py

CHECKOUT_ONLY = "trellis_tools"


class BuildProduct(build_py):
    """Copies the product's packages into a wheel."""

    def run(self) -> None:
        """Copy all packages but those of the checkout."""
        if not self.editable_mode:
            self.packages = [name for name in self.packages if name.partition(".")[0] != CHECKOUT_ONLY]
            # Listed by package when first asked for, which was before.
            self.__dict__.pop("data_files", None)
        super().run()


setup(cmdclass={"build_py": BuildProduct})
