"""Episodes within a bound of characters: they travel in batches and are kept by the thousand."""

from trellis_contracts.agents import ToolCall, Trajectory, Turn

#: No text is cut below this.
MIN_TEXT = 200
#: Turns that are shown of an episode with more, from its beginning and its end.
MAX_TURNS = 80


def shorten(trajectory: Trajectory, most_characters: int) -> Trajectory:
    """Shorten ``trajectory`` to about ``most_characters`` in all; long texts lose their middle first.

    At least ``MIN_TEXT`` characters of each text stay, so very many turns may take more.
    """
    turns, is_cut = trajectory.turns, False
    if len(turns) > MAX_TURNS:
        turns, is_cut = [*turns[: MAX_TURNS // 2], *turns[-MAX_TURNS // 2 :]], True
    lengths = [length for turn in turns for length in _lengths(turn)]
    if sum(lengths) <= most_characters:
        if not is_cut:
            return trajectory
        return trajectory.model_copy(update={"turns": turns, "is_shortened": True})
    limit = max(MIN_TEXT, _share(sorted(lengths), most_characters))
    shown = [_cut_turn(turn, limit) for turn in turns]
    return trajectory.model_copy(update={"turns": shown, "is_shortened": True})


def cut(text: str, limit: int) -> str:
    """Keep the beginning and end of ``text`` if it is longer than ``limit``."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]} … [{len(text) - limit} characters] … {text[len(text) - (limit - head) :]}"


def _lengths(turn: Turn) -> list[int]:
    return [len(turn.text), *(length for call in turn.calls for length in _call_lengths(call))]


def _call_lengths(call: ToolCall) -> list[int]:
    return [len(call.result or ""), len(str(call.arguments))]


def _share(lengths: list[int], room: int) -> int:
    """Return the maximum length per text so that all texts fit in ``room``; ``lengths`` ascend."""
    for place, length in enumerate(lengths):
        left = len(lengths) - place
        if length * left >= room:
            return room // left
        room -= length
    return lengths[-1]


def _cut_turn(turn: Turn, limit: int) -> Turn:
    calls = [_cut_call(call, limit) for call in turn.calls]
    return turn.model_copy(update={"text": cut(turn.text, limit), "calls": calls})


def _cut_call(call: ToolCall, limit: int) -> ToolCall:
    arguments = {name: _cut_value(value, limit) for name, value in call.arguments.items()}
    result = None if call.result is None else cut(call.result, limit)
    return call.model_copy(update={"arguments": arguments, "result": result})


def _cut_value(value: object, limit: int) -> object:
    """Cut long texts; show a long structure as the text that it is."""
    if isinstance(value, str):
        return cut(value, limit)
    text = str(value)
    return value if len(text) <= limit else cut(text, limit)
