"""Opens addresses that a pipeline or a server's answer names, and none that must not be opened for somebody.

The host is resolved once, every address that comes back is looked at, and the connection goes to one of
these: a name that resolves to something else a moment later changes nothing. A redirect is an address like
any other where it is followed at all.
"""

import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from trellis_data.operator import OperatorProblem

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Translated to IPv4 on the way (RFC 6052).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
#: Amazon's metadata of a machine; the others' are link-local.
_METADATA = ipaddress.ip_address("fd00:ec2::254")
#: The owner's setting, and what stands for yes there.
_ALLOWS, _YES = "TRELLIS_ALLOW_LOCAL_ADDRESSES", ("1", "true", "yes", "on", "t", "y")

#: Where a caller would wait for ever, as the hub's client does: the server says nothing for so long.
_LONGEST_S = {"connect": 15.0, "read": 120.0, "write": 120.0, "pool": 60.0}


def open_client(*, allows_local: bool, timeout_s: float, headers: dict[str, str]) -> httpx.Client:
    """Open a client that checks addresses; ``allows_local`` permits this machine and private networks."""
    transport = _CheckedTransport(allows_local=allows_local, uses_proxies=False)
    return httpx.Client(transport=transport, timeout=timeout_s, headers=headers, follow_redirects=False)


def open_endpoint_client(
    endpoint: str,
    *,
    timeout: httpx.Timeout | None,
    follow_redirects: bool,
    event_hooks: Mapping[str, list[Callable[..., Any]]] | None = None,
) -> httpx.Client:
    """Open a client for an address that the owner has set and for addresses that its responses name.

    Proxies of the environment resolve names and connect themselves: only addresses without a name are looked
    at then.
    """
    transport = _CheckedTransport(allows_local=allows_local_beside(endpoint), uses_proxies=True)
    return httpx.Client(
        transport=transport, timeout=timeout, follow_redirects=follow_redirects, event_hooks=event_hooks
    )


def allows_local_beside(endpoint: str) -> bool:
    """Return whether addresses that an endpoint of the owner leads to may be local or in a private network.

    It may where the endpoint itself is, and where the owner says so.
    """
    return os.environ.get(_ALLOWS, "").lower() in _YES or _is_local(httpx.URL(endpoint).host)


def _is_local(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False  # asked again, and explained, when it is opened
    return any(not ipaddress.ip_address(str(each[4][0]).partition("%")[0]).is_global for each in found)


def check_address(host: str, address: str, *, allows_local: bool) -> None:
    """Raise ``OperatorProblem`` where an address of a host is not opened."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if problem := explain_refusal(parsed, allows_local=allows_local):
        message = f"Access to host '{host}' ({address}) is not allowed: {problem}."
        raise OperatorProblem("address_refused", message)


def explain_refusal(address: Address, *, allows_local: bool) -> str | None:
    """Return why an address must not be opened, or None if it may be.

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
        return f"it is this machine's or a private network's ({_ALLOWS})"
    return None


class _CheckedTransport(httpx.BaseTransport):
    """Connects to the address that was looked at; the name stays in the Host header and for TLS."""

    def __init__(self, *, allows_local: bool, uses_proxies: bool) -> None:
        self._allows_local, self._uses_proxies = allows_local, uses_proxies
        self._ssl: ssl.SSLContext | None = None
        #: By host or proxy: a connection that was made for one name must not be used for another one at the
        #: same address, whose certificate nobody has seen.
        self._opened: dict[str, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if request.url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(f"'{request.url.scheme}' is not opened", request=request)
        asked = {name: s for name, s in request.extensions.get("timeout", {}).items() if s is not None}
        request.extensions = {**request.extensions, "timeout": {**_LONGEST_S, **asked}}
        if self._uses_proxies and (proxy := _find_proxy(request.url)):
            self._check_literal(host)
            return self._open(proxy, proxy=proxy).handle_request(request)
        addresses = self._resolve(host, request.url.port or (443 if request.url.scheme == "https" else 80))
        request.extensions = {**request.extensions, "sni_hostname": host}
        for address in addresses[:-1]:
            try:
                return self._send(request, address)
            except httpx.ConnectError:
                continue  # such as one of IPv6 on a machine without it
        return self._send(request, addresses[-1])

    def close(self) -> None:
        for transport in self._opened.values():
            transport.close()

    def _send(self, request: httpx.Request, address: str) -> httpx.Response:
        url = request.url.copy_with(host=address)
        to_address: Any = httpx.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
        )
        return self._open(request.url.host).handle_request(to_address)

    def _open(self, name: str, *, proxy: str | None = None) -> httpx.HTTPTransport:
        if name not in self._opened:
            self._ssl = self._ssl or httpx.create_ssl_context()
            self._opened.setdefault(name, httpx.HTTPTransport(verify=self._ssl, proxy=proxy))
        return self._opened[name]

    def _check_literal(self, host: str) -> None:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return  # a name, which the proxy resolves
        check_address(host, host, allows_local=self._allows_local)

    def _resolve(self, host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"the host '{host}' is not known: {error}") from error
        addresses = list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))
        for address in addresses:
            check_address(host, address, allows_local=self._allows_local)
        return addresses


def _find_proxy(url: httpx.URL) -> str | None:
    """Find the environment's proxy that is used for an address, or None."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return None if proxy is None or proxy_bypass(url.host) else proxy
