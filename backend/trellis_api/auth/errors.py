"""What can be wrong with a credential."""

from trellis_api.core.errors import DomainError


class NotLoggedIn(DomainError):
    """No credential, or one that is not valid."""

    status = 401
    code = "not_logged_in"

    def __init__(self, message: str = "Log in, or send the token as `Authorization: Bearer ...`.") -> None:
        super().__init__(message, headers={"WWW-Authenticate": "Bearer"})


class LoginFailed(DomainError):
    """The token or the login link is not valid."""

    status = 401
    code = "login_failed"


class CrossSiteRequest(DomainError):
    """A cookie came with a request that no page of ours sent."""

    status = 403
    code = "cross_site_request"


class TooManyAttempts(DomainError):
    """Somebody is guessing."""

    status = 429
    code = "too_many_attempts"
