"""Opens addresses that a pipeline or a server's answer names, and none that must not be opened for somebody.

The host is resolved once, every address that comes back is looked at, and the connection goes to one of
these: a name that resolves to something else a moment later changes nothing. A redirect is an address like
any other where it is followed at all.
"""

import ipaddress
import socket
from typing import Any
from urllib.request import getproxies

import httpx

from trellis_data.operator import OperatorProblem

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Translated to IPv4 on the way (RFC 6052).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
#: Amazon's metadata of a machine; the others' are link-local.
_METADATA = ipaddress.ip_address("fd00:ec2::254")


def open_client(*, allows_local: bool, timeout_s: float, headers: dict[str, str]) -> httpx.Client:
    """A client for such addresses; ``allows_local``: also those of this machine and of private networks."""
    transport = _CheckedTransport(allows_local=allows_local)
    return httpx.Client(transport=transport, timeout=timeout_s, headers=headers, follow_redirects=False)


def open_endpoint_client(endpoint: str, *, timeout: httpx.Timeout, follow_redirects: bool) -> httpx.Client:
    """A client for an address that the owner has set, and for those that its answers name.

    These are on this machine or in a private network only where the endpoint itself is.
    """
    proxies = getproxies()
    if proxies.keys() & {"http", "https", "all"}:  # which resolve names and connect themselves
        return httpx.Client(timeout=timeout, follow_redirects=follow_redirects)
    transport = _CheckedTransport(allows_local=_is_local(httpx.URL(endpoint).host))
    return httpx.Client(transport=transport, timeout=timeout, follow_redirects=follow_redirects)


def _is_local(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False  # asked again, and explained, when it is opened
    return any(not ipaddress.ip_address(str(each[4][0]).partition("%")[0]).is_global for each in found)


def explain_refusal(address: Address, *, allows_local: bool) -> str | None:
    """Why an address is not opened, or None.

    >>> explain_refusal(ipaddress.ip_address("169.254.169.254"), allows_local=True)
    'it is link-local'
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return explain_refusal(inner, allows_local=allows_local)
    if address.is_link_local or address == _METADATA:
        return "it is link-local"
    if address.is_multicast or address.is_unspecified:
        return "it is not the address of a single machine"
    if not address.is_global and not allows_local:
        return "it is this machine's or a private network's (TRELLIS_ALLOW_LOCAL_ADDRESSES)"
    return None


class _CheckedTransport(httpx.BaseTransport):
    """Connects to the address that was looked at; the name stays in the Host header and for TLS."""

    def __init__(self, *, allows_local: bool) -> None:
        self._allows_local = allows_local
        self._inner = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        addresses = self._resolve(host, request.url.port or (443 if request.url.scheme == "https" else 80))
        request.extensions = {**request.extensions, "sni_hostname": host}
        for address in addresses[:-1]:
            try:
                return self._send(request, address)
            except httpx.ConnectError:
                continue  # such as one of IPv6 on a machine without it
        return self._send(request, addresses[-1])

    def close(self) -> None:
        self._inner.close()

    def _send(self, request: httpx.Request, address: str) -> httpx.Response:
        url = request.url.copy_with(host=address)
        to_address: Any = httpx.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
        )
        return self._inner.handle_request(to_address)

    def _resolve(self, host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"the host '{host}' is not known: {error}") from error
        addresses = list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))
        for address in addresses:
            problem = explain_refusal(ipaddress.ip_address(address), allows_local=self._allows_local)
            if problem is not None:
                message = f"Access to host '{host}' ({address}) is not allowed: {problem}."
                raise OperatorProblem("address_refused", message)
        return addresses
