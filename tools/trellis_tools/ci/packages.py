"""Where the packages of this checkout are."""

#: Folder of each package of ours.
ROOTS = {
    "trellis_contracts": "contracts",
    "trellis_recipes": "recipes",
    "trellis_data": "factory",
    "trellis_evaluation": "evaluation",
    "trellis_api": "backend",
    "trellis_workers": "workers",
    "trellis_train": "verl",
    "trellis_cli": "cli",
    "trellis_tools": "tools",
    "trellis": "sdk",
}
