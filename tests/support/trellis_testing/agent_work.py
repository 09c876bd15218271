"""What workers do for agents, in the process of a test: environments, calls of tools, pipelines of jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.job_pipelines import repository
from trellis_api.job_pipelines.advance import advance
from trellis_workers.environments.calls import call_waiting
from trellis_workers.environments.make import make_waiting, take_in_waiting

TIME = "2026-01-01T00:00:00Z"


@contextmanager
def carrying_out_agent_work(settings: Settings) -> Iterator[None]:
    """Carry out agent work while the block lasts. Data tasks import the environments' rows."""
    database = Database(settings)
    is_over = Event()

    def work() -> None:
        while not is_over.wait(0.2):
            make_waiting(settings, database)
            take_in_waiting(settings, database)
            call_waiting(settings, database)
            with database.read() as session:
                unsettled = repository.list_unsettled(session)
            for pipeline_id in unsettled:
                with database.write() as session:
                    advance(session, settings, pipeline_id=pipeline_id)

    thread = Thread(target=work, name="agent-work")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        database.dispose()


def turn(role: str, text: str, tokens: int, **more: Any) -> dict[str, Any]:
    """Build one message of an episode; what the agent wrote is trained on."""
    return {"role": role, "text": text, "tokens": tokens, "is_trained": role == "assistant", **more}


def search_call(sql: str, result: str | None, **more: Any) -> dict[str, Any]:
    """Build a call of the search tool."""
    return {
        "name": "search_profile",
        "arguments": {"sql": sql, "params": ["%Rust%"], "max_rows": 20},
        "result": result,
        "duration_s": 0.0042,
        **more,
    }


ROWS = (
    '{"success": true, "rows": [{"linkedin_handle": "ada-kern", "name": "Ada Kern", "skills": "Rust, SQL"},'
    ' {"linkedin_handle": "bo-li", "name": "Bo Li", "skills": "Rust"}], "row_count": 2, "truncated": false}'
)
DENIED = '{"success": false, "error": {"code": "DENIED", "message": "sqlite_master cannot be read"}}'
SYSTEM = (
    "You find people in a database of profiles. Call search_profile and read_profile as often as you need,"
    " then answer with return_results."
)
SEARCH = (
    "SELECT linkedin_handle, name, skills FROM profiles WHERE skills LIKE ? AND summary IS NOT NULL"
    " ORDER BY name LIMIT 20"
)


def answered_episode() -> dict[str, Any]:
    """Build an episode with a refused search, a good one, and an answer."""
    read = '{"linkedin_handle": "ada-kern", "name": "Ada Kern", "experiences": [{"title": "Engineer"}]}'
    return {
        "stop_reason": "answered",
        "duration_s": 3.4,
        "is_shortened": False,
        "turns": [
            turn("system", SYSTEM, 212),
            turn("user", "Who in Bern knows Rust and has worked as an engineer?", 14),
            turn(
                "assistant",
                "I look at the tables first.",
                38,
                duration_s=0.8,
                calls=[search_call("SELECT name FROM sqlite_master", DENIED, error="DENIED")],
            ),
            turn("tool", DENIED, 24, duration_s=0.001),
            turn(
                "assistant",
                "Profiles it is.",
                64,
                duration_s=1.2,
                calls=[search_call(SEARCH, ROWS, result_count=2)],
            ),
            turn("tool", ROWS, 71, duration_s=0.0042),
            turn(
                "assistant",
                "",
                22,
                duration_s=0.5,
                calls=[
                    {
                        "name": "read_profile",
                        "arguments": {"linkedin_handle": "ada-kern"},
                        "result": read,
                        "duration_s": 0.0009,
                    }
                ],
            ),
            turn("tool", read, 33, duration_s=0.0009),
            turn("user", "This is your last turn: call return_results.", 10),
            turn(
                "assistant",
                "",
                19,
                duration_s=0.4,
                calls=[
                    {
                        "name": "return_results",
                        "arguments": {"results": ["ada-kern"]},
                        "result": '{"success": true}',
                        "result_count": 1,
                        "duration_s": 0.0001,
                    }
                ],
            ),
        ],
    }


def lost_episode(stop_reason: str = "turns") -> dict[str, Any]:
    """Build an episode that comes to nothing."""
    return {
        "stop_reason": stop_reason,
        "duration_s": 1.1,
        "is_shortened": True,
        "turns": [
            turn("system", SYSTEM, 212),
            turn("user", "Who knows Rust?", 6),
            turn("assistant", "Let me think about that.", 12, duration_s=1.0),
        ],
    }


def failed_episode(error: str) -> dict[str, Any]:
    """Build a session of a workflow that raised an exception."""
    return {
        "stop_reason": "workflow_error:AttributeError",
        "duration_s": 0.4,
        "is_shortened": False,
        "error": error,
        "turns": [turn("user", "What does a plum cost?", 6), turn("assistant", "Three.", 3, duration_s=0.2)],
    }


def episode(group: str, score: float, trajectory: dict[str, Any], **parts: float) -> dict[str, Any]:
    """Build a rollout that is an episode."""
    return {
        "group": group,
        "prompt": trajectory["turns"][1]["text"],
        "response": "",
        "ground_truth": '["ada-kern"]',
        "score": score,
        "reward_parts": {"acc": float(score > 1), **parts},
        "response_tokens": sum(each["tokens"] for each in trajectory["turns"][2:]),
        "advantage": score - 0.5,
        "trajectory": trajectory,
    }
