"""What the agent is told beside its tools."""

from trellis_train.agents.linksearch.options import Options

_SYSTEM = (
    "You find people in a database of profiles. Search it with SQL, read profiles where the rows do not"
    " tell enough, and return the LinkedIn handles of everybody who fits, at most {profiles}."
    " You have {turns} turns with up to {calls} tool calls each.\n"
    "Tables: profiles(rid, id, linkedin_handle, name, summary, about, skills),"
    " experiences(profile_id, title, company, location, start_date, end_date, is_current, employment_type,"
    " description), educations(profile_id, school, degree, field_of_study, start_date, end_date),"
    " profiles_fts(name, summary, about, skills, experience, education; rowid = profiles.rid)."
    " profile_id is profiles.id; skills are separated by ', '."
)
LAST_TURN = "This is your last turn: call return_results now with the handles you have found."


def system_prompt(options: Options) -> str:
    """The same for every episode of a run."""
    return _SYSTEM.format(profiles=options.max_profiles, turns=options.turns, calls=options.max_calls)
