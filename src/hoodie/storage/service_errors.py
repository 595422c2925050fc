"""Errors of object stores in one sentence: what the service answered, and what to do.

obstore gives the answer of the service, a dump of its own types, and all requests it made, in forty lines. It may also
raise `PanicException`, which is no `Exception`; nothing above this room could handle it.
"""

from __future__ import annotations

from hoodie.errors import StorageError

_REASONS = (
    (("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist"), "the bucket does not exist; check its "
     "name, the endpoint and the region"),
    (("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint", "without a `Location`"),
     "the bucket is in another region; set the storage option aws_region to its region"),
    (("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "AuthenticationFailed"),
     "the service refused the credentials; check the storage options or environment variables that hold them"),
    (("169.254.169.254", "metadata.google.internal", "MissingCredentials"), "no credentials were found; set them as "
     "storage options or environment variables, or set skip_signature=true for a public bucket"),
    (("BadScheme",), "the endpoint is not encrypted (http); set the storage option allow_http=true if that is meant"),
    (("kind: Connect", "dns error", "ConnectError"), "no connection to the service; check the endpoint, the network "
     "and the proxy"),
    (("kind: Timeout", "operation timed out"), "the service did not answer in time; check the network, or set the "
     "storage option timeout"),
    (("AccessDenied", "PermissionDenied", "403 Forbidden", "Unauthenticated", "401 Unauthorized"), "access is denied; "
     "give the credentials the right to list, read, write and delete there"),
    (("SlowDown", "503 Service Unavailable"), "the service asks for fewer requests; try again later"),
)  # fmt: skip
_LENGTH_MAX = 200


def is_panic(error: BaseException) -> bool:
    """Return whether obstore's native code failed: such an error is no `Exception`."""
    return type(error).__name__ == "PanicException"


def is_known(error: BaseException) -> bool:
    """Return whether the error has one of the reasons that are told in words of their own."""
    return _reason(error) is not None


def explanation(uri: str, error: BaseException) -> StorageError:
    """Return the error to raise instead of obstore's."""
    reason = _reason(error)
    if reason is None:
        text = first_line(error)
        reason = f"obstore failed ({text}); report this" if is_panic(error) else f"{text}; try again"
    return StorageError(f"{uri}: {reason}")


def first_line(error: BaseException) -> str:
    """Return the part of obstore's text that says what happened."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}…"


def _reason(error: BaseException) -> str | None:
    text = f"{type(error).__name__}: {error}"
    return next((reason for signs, reason in _REASONS if any(sign in text for sign in signs)), None)
