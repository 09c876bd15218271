"""`trellis datasets samples | get`: small tasks to try recipes with."""

from typing import Annotated

import typer

from trellis_cli.client import connect
from trellis_cli.output import Json, out, print_json, print_table
from trellis_cli.waiting import wait_for_dataset


def samples(as_json: Json = False) -> None:
    """List sample datasets that `trellis datasets get` can add."""
    items = connect().get("/datasets/samples")["items"]
    if as_json:
        print_json(items)
        return
    rows = [(each["name"], each["format"], each["dataset_id"], each["description"]["en"]) for each in items]
    print_table(("name", "format", "dataset", "good for"), rows)


def get(
    name: Annotated[str, typer.Argument(help="Name from `trellis datasets samples`.")],
    wait: Annotated[bool, typer.Option(help="Wait until its rows are read.")] = True,
    as_json: Json = False,
) -> None:
    """Add a sample dataset, e.g. `trellis datasets get addition-prompts`; added ones are kept."""
    client = connect()
    dataset = client.post(f"/datasets/samples/{name}", {})
    if wait:
        dataset = wait_for_dataset(client, dataset["id"])
    if as_json:
        print_json(dataset)
    else:
        out.print(f"{dataset['id']}  {dataset['name']}  {dataset['state']}", highlight=False)
