"""Storage options of object stores: every spelling that obstore, delta-rs and object_store take, in either case."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import InvalidConfigError

CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_max_frame_size",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "timeout",
        "user_agent",
    }
)
"""Options of the HTTP client. obstore requires them separate from the service's options, and panics otherwise."""

HARMLESS = CLIENT_OPTIONS - {"proxy_url", "proxy_ca_certificate"} | {
    "durable",
    *(
        f"{prefix}{name}"
        for prefix in ("", "aws_")
        for name in ("region", "default_region", "endpoint", "endpoint_url", "bucket", "skip_signature")
    ),
    "aws_virtual_hosted_style_request",
    "azure_storage_account_name",
    "account_name",
}
"""Options whose values may be shown. All other values are hidden: a secret may be behind a misspelt name."""

_MASKED_CHARS_MIN = 4
"""Values with fewer characters are not masked in messages: they would hide parts of words."""

_ENDPOINTS = frozenset(
    {
        *("endpoint", "endpoint_url", "base_url", "aws_endpoint", "aws_endpoint_url", "aws_endpoint_url_s3"),
        *("azure_endpoint", "azure_storage_endpoint", "google_base_url"),
    }
)
"""Options whose values are URLs of the service."""

_SERVICES = ("aws_", "azure_storage_", "azure_", "google_")
_MEANINGLESS = {
    "aws_s3_allow_unsafe_rename": "hoodie renames no objects",
    "aws_s3_locking_provider": "hoodie locks tables by conditional puts",
    "delta_dynamo_table_name": "hoodie locks tables by conditional puts",
}
_CONDITIONAL_PUT = frozenset({"aws_conditional_put", "conditional_put"})
_ETAG = "etag"
"""The value of `aws_conditional_put` that is the default of obstore: puts by conditional requests of S3."""


def normalised(options: Mapping[str, object]) -> dict[str, str]:
    """Return the options with names in lower case, and those of the HTTP client without the service's prefix.

    Raises:
        InvalidConfigError: a value is no text, number or flag; two spellings of one option have different values; or
            the option has a meaning only for other libraries, or turns conditional puts off. The message has names, and
            no values.
    """
    found: dict[str, str] = {}
    for given, value in options.items():
        name = _plain(given)
        if name in _MEANINGLESS:
            raise InvalidConfigError(f"storage option {given!r}: {_MEANINGLESS[name]}; remove the option")
        if not isinstance(value, str | int | float):
            raise InvalidConfigError(f"storage option {given!r}: expected a text, found {type(value).__name__}")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if name in _CONDITIONAL_PUT and text.strip().lower() != _ETAG:
            message = (
                f"storage option {given!r}: hoodie needs conditional puts; remove the option, or set it to {_ETAG!r}"
            )
            raise InvalidConfigError(message)
        if name in _ENDPOINTS:
            _check_endpoint(f"storage option {given!r}", text)
        if found.setdefault(name, text) != text:
            raise InvalidConfigError(f"storage option {name!r} is given in two spellings with different values")
    return found


def _check_endpoint(where: str, text: str) -> None:
    """Refuse a text that is no URL of a service, at which obstore would fail in its native code.

    Raises: InvalidConfigError. The message has the text, unless it may have credentials.
    """
    scheme, separator, host = text.strip().partition("://")
    if separator and scheme.lower() in ("http", "https") and host.strip("/") and not any(map(str.isspace, host)):
        return
    found = "a URL with credentials" if "@" in text else repr(text)
    raise InvalidConfigError(f"{where}: expected a URL such as https://host:9000, found {found}")


def check_endpoints_of(scheme: str, environment: Mapping[str, str]) -> None:
    """Check the endpoints that obstore reads from the environment, for its name of a scheme.

    Raises: InvalidConfigError.
    """
    prefix = _prefix_of(scheme)
    for name, text in environment.items():
        if name.lower().startswith(prefix) and name.lower() in _ENDPOINTS:
            _check_endpoint(f"environment variable {name}", text)


def client_environment(scheme: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the HTTP client's options in the environment, such as `AWS_ALLOW_HTTP`, for obstore's name of a scheme.

    obstore reads the service's own options from the environment; it forgets the client's when one of them is passed.

    >>> client_environment("s3", {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "eu-west-1", "AZURE_TIMEOUT": "9s"})
    {'allow_http': 'true'}
    """
    prefix = _prefix_of(scheme)
    found = {name.lower(): value for name, value in environment.items()}
    return {name: found[prefix + name] for name in sorted(CLIENT_OPTIONS) if prefix + name in found}


def _prefix_of(scheme: str) -> str:
    return {"s3": "aws_", "gs": "google_"}.get(scheme, "azure_")


def masked(text: str, values: Mapping[str, str]) -> str:
    """Return a text in which `***` stands for the values of options that may be secret."""
    for name, value in values.items():
        if name not in HARMLESS and len(value) >= _MASKED_CHARS_MIN:
            text = text.replace(value, "***")
    return text


def shown(name: str, value: str) -> str:
    """Return `name=value` for a message, without a value that may be secret."""
    return f"{name}={value!r}" if name.lower() in HARMLESS else f"{name}=***"


def _plain(given: str) -> str:
    name = given.strip().lower()
    for prefix in _SERVICES:
        if name.startswith(prefix) and name.removeprefix(prefix) in CLIENT_OPTIONS:
            return name.removeprefix(prefix)
    return name
