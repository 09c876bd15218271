"""The clients of the hubs and of S3, opening no address that must not be opened for somebody.

What their endpoints answer names further addresses: redirects, files, uploads. They are looked at as
``addresses`` does it, when the connection is made.
"""

import socket
from contextlib import AbstractContextManager
from typing import Any
from urllib.request import getproxies

import httpx
from trellis_recipes.modelscope import TIMEOUT, ModelScopeFiles

from trellis_data.addresses import allows_local_beside, check_address, open_endpoint_client
from trellis_data.operator import OperatorProblem

#: Xet's own client connects by itself, to addresses that the hub names: only where that is the hub proper.
_HUB = "huggingface.co"
#: The endpoint that this process guards, once it does.
_guarded: set[str] = set()


def guard_hub(endpoint: str) -> None:
    """Let the hub's client, in this process, open only what its endpoint may lead to.

    The client raises ``OperatorProblem`` for other addresses.
    """
    if endpoint in _guarded:
        return  # a client in use would be closed
    from huggingface_hub import constants, get_session, set_client_factory

    hooks = get_session().event_hooks  # the client's own: requests are told apart by them, and counted
    set_client_factory(
        lambda: open_endpoint_client(endpoint, timeout=None, follow_redirects=True, event_hooks=hooks)
    )
    _guarded.clear()
    _guarded.add(endpoint)
    if httpx.URL(endpoint).host != _HUB:
        constants.HF_HUB_DISABLE_XET = True


class GuardedModelScope(ModelScopeFiles):
    """ModelScope, whose client raises ``OperatorProblem`` for addresses that its own may not lead to."""

    def open_client(
        self, *, follow_redirects: bool, timeout: httpx.Timeout = TIMEOUT
    ) -> AbstractContextManager[httpx.Client]:
        """Open a client that connects to private networks only if ModelScope's own address is in one."""
        return open_endpoint_client(self.endpoint, timeout=timeout, follow_redirects=follow_redirects)


def open_s3(options: dict[str, Any]) -> Any:
    """Open s3fs with these options; every address it connects to is checked, also after redirects."""
    import s3fs

    if any(scheme in getproxies() for scheme in ("http", "https", "all")):  # which connect themselves
        return s3fs.S3FileSystem(use_listings_cache=False, **options)
    sockets = _CheckedSockets()
    config = options.get("config_kwargs", {})
    guarded = {**config, "connector_args": {**config.get("connector_args", {}), "socket_factory": sockets}}
    files = s3fs.S3FileSystem(
        use_listings_cache=False, skip_instance_cache=True, **{**options, "config_kwargs": guarded}
    )
    # Where the endpoint is, options, variables and configuration files say together.
    sockets.allows_local = allows_local_beside(files.s3.meta.endpoint_url)
    return files


class _CheckedSockets:
    """Makes the sockets of a client, where the address that is connected to is known."""

    def __init__(self) -> None:
        self.allows_local = False

    def __call__(self, info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        try:
            check_address("S3", str(address[0]), allows_local=self.allows_local)
        except OperatorProblem as problem:
            # As if it could not be reached: another address of the same name may be.
            raise OSError("the address is not opened") from problem
        return socket.socket(family, kind, protocol)
