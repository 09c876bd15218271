/** What stands in the editor before anything is typed: the smallest workflow that can be trained. */
export const STARTING_WORKFLOW = `"""Asks the model once and rewards the right answer."""

from typing import Any, Dict

from trellis import TunableChatModel


async def workflow(task: Dict[str, Any], model: TunableChatModel) -> float:
    reply = await model([{"role": "user", "content": str(task["question"])}])
    return float(str(task["answer"]).strip() in reply.text)
`
