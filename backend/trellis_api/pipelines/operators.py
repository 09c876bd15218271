"""The operators, as forms are made of them."""

from functools import cache

from trellis_data.catalogue import describe, operators
from trellis_data.operator import GlobalOperator

from trellis_api.pipelines.schemas import OperatorList, OperatorRead


@cache
def list_operators() -> OperatorList:
    """List the operators in the order of their usual use; made once, as it never changes."""
    return OperatorList(
        items=[
            OperatorRead(**describe(operator), needs_all_rows=issubclass(operator, GlobalOperator))
            for operator in operators().values()
        ]
    )
