"""Whether a text is JSON that fits a schema, with a real time limit where the schema holds patterns."""

from trellis_train.rewards.schema_worker import answer
from trellis_train.rewards.timed_pool import TimedPool

#: Of the processor's time.
TIMEOUT_S = 5.0
#: Begins the keywords with patterns: "pattern", "patternProperties".
_PATTERN = '"pattern'

_pool = TimedPool("trellis_train.rewards.schema_worker", trial=("{}", "{}"))


def fits_schema(text: str, schema: str) -> bool:
    """Tell whether text fits ``schema``; ``TimeoutError`` if too slow. Safe to call from many threads."""
    if _PATTERN not in schema:
        return answer(text, schema)
    fits = _pool.ask(text, schema, timeout_s=TIMEOUT_S)
    if fits is None:
        raise TimeoutError(f"the schema could not be checked on this response within {TIMEOUT_S:g} s")
    return fits
