"""What a run may choose of its sessions: the recipe's parameters of group ``agent``."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from trellis_train.agents.episode.tool_template import HERMES, OWN
from trellis_train.agents.tune.choices import REASONING_PARSERS
from trellis_train.agents.tune.isolation import RunnerLimits

NO_PARSER = "none"
#: Resolved by the platform, not options of the loop.
_REFERENCES = ("workflow", "environment")


class BadOptions(ValueError):
    """An option is unknown or has a value that cannot be."""


@dataclass(frozen=True)
class Options:
    """Options of a run's sessions."""

    #: Sessions that run at a time.
    runners: int = 16
    session_timeout: float = 900.0
    step_timeout: float = 30.0
    memory_mb: int = 1024
    #: Of a reply whose call says nothing of its length.
    reply_tokens: int | None = None
    #: ``model``: its own chat template; ``hermes``: that with the tools put into it.
    tool_template: str = OWN
    #: ``none``, or what takes the thinking before ``</think>`` out of a reply's text.
    reasoning_parser: str = NO_PARSER

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> "Options":
        """Parse the tune options. Raises ``BadOptions``."""
        chosen = {
            name: value for name, value in given.items() if name not in _REFERENCES and value is not None
        }
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(chosen) - known):
            raise BadOptions(
                f"unknown tune option: {', '.join(unknown)}; choose from {', '.join(sorted(known))}"
            )
        template = chosen.pop("tool_template", OWN)
        if template not in (OWN, HERMES):
            raise BadOptions(f"tool_template must be {OWN} or {HERMES}, not {template!r}")
        parser = chosen.pop("reasoning_parser", NO_PARSER)
        if parser not in (NO_PARSER, *REASONING_PARSERS):
            parsers = ", ".join((NO_PARSER, *REASONING_PARSERS))
            raise BadOptions(f"reasoning_parser must be one of {parsers}, not {parser!r}")
        for name, value in chosen.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise BadOptions(f"{name} must be a number above 0, not {value!r}")
        return cls(**chosen, tool_template=template, reasoning_parser=parser)

    def as_limits(self) -> RunnerLimits:
        """Convert to the limits of the runner."""
        return RunnerLimits(
            runners=int(self.runners),
            session_timeout_s=float(self.session_timeout),
            step_timeout_s=float(self.step_timeout),
            memory_mb=int(self.memory_mb),
        )
