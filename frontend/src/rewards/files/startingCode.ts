/** What stands in the editor before anything is typed: the smallest function that shows all it is given. */
export const STARTING_CODE = `"""Scores 1 where the last number of the response is the answer."""

import re


def score(prompt, response, answer, row):
    numbers = re.findall(r"-?\\d+", response)
    return float(bool(numbers) and numbers[-1] == str(answer).strip())
`
