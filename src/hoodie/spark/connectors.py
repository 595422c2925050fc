"""Decide whether Spark itself can scan the files of a table: under which URIs, and with which options.

Local files need nothing. For an object store Spark needs a Hadoop connector (hadoop-aws, hadoop-azure, gcs-connector).
A Connect session cannot list the classes of its server, so that each session tries once for each store, and remembers
the answer. Without a connector Python workers read the files, by the store's own client.

The storage options of the table become options of the connector. In a classic session they are options of the reader,
which no plan and no event log shows. A Connect server records the options of readers as plain text in its event log,
and hides secret settings of a session by their names: there they become settings of the session, for S3 only, because
Spark does not hide the key of an Azure account.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from hoodie.errors import HoodieWarning
from hoodie.files.table_properties import PROPERTIES
from hoodie.spark.workers import is_connect, reason
from hoodie.storage import Store, StoreSpec
from hoodie.storage.options import masked, normalised
from hoodie.storage.paths import checked_path, literal_path, native_scheme

_S3, _GS, _AZURE = "s3a", "gs", "abfss"
_SCHEMES: Final = {"s3": _S3, "az": _AZURE, "adl": _AZURE, "azure": _AZURE}
"""Hadoop's schemes of object stores, where they differ."""
_ARTIFACTS: Final = {
    _S3: "org.apache.hadoop:hadoop-aws",
    _GS: "com.google.cloud.bigdataoss:gcs-connector",
    _AZURE: "org.apache.hadoop:hadoop-azure",
    "abfs": "org.apache.hadoop:hadoop-azure",
}
_OF_HADOOP: Final = "org.apache.hadoop:"
_PROVIDERS: Final = "org.apache.hadoop.fs.s3a."
_OAUTH: Final = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
_MISSING = re.compile(r"ClassNotFoundException|No FileSystem for scheme|UnsupportedFileSystem")


@dataclass(frozen=True, slots=True)
class Access:
    """How Spark reads the files of a store: the URI of its folder, and options of the connector."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def uri_of(self, path: str) -> str:
        """Return the URI of a file, without percent-encoding."""
        return f"{self.uri}/{checked_path(path)}"

    def reader(self, session: Any) -> Any:
        """Return a reader of the session that has the options."""
        return session.read if is_connect(session) else session.read.options(**self.options)


_accesses: WeakKeyDictionary[Any, dict[StoreSpec, Access | None]] = WeakKeyDictionary()
"""How each session reads its stores; None for a store that it does not read."""
_warned: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The texts of the warnings of a session."""


def access_of(session: Any, store: Store) -> Access | None:
    """Return how Spark scans the files of a store; None if it cannot, so that Python workers must read them.

    Warns: `HoodieWarning` once a session, if a connector is missing or does not open the store.
    """
    if not store.spec.is_remote:
        return Access(store.uri("").rstrip("/"))
    accesses = _accesses.setdefault(session, {})
    if store.spec not in accesses:
        accesses[store.spec] = _tried(session, store.spec, _warned.setdefault(session, set()))
    return accesses[store.spec]


def hadoop_access(spec: StoreSpec) -> Access | None:
    """Translate an object store to a URI and options of Hadoop; None for an Azure container without an account."""
    given, _, rest = spec.uri.partition("://")
    scheme = _SCHEMES.get(native_scheme(given), native_scheme(given))
    bucket, _, folder = rest.rstrip("/").partition("/")
    options = normalised(dict(spec.options))
    if scheme == _S3:
        translated = _s3(bucket, options)
    elif scheme == _GS:
        keyfile = _first(options, "google_service_account", "service_account", "google_service_account_path")
        translated = {
            "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE" if keyfile else "",
            "fs.gs.auth.service.account.json.keyfile": keyfile,
        }
    else:
        container, _, host = bucket.partition("@")
        account = _first(options, "azure_storage_account_name", "account_name") or os.environ.get(
            "AZURE_STORAGE_ACCOUNT_NAME", ""
        )
        if not host and not account:
            return None
        host = host or f"{account}.dfs.core.windows.net"
        bucket, translated = f"{container}@{host}", _azure(host, options)
    return Access(
        f"{scheme}://{bucket}/{folder}".rstrip("/"), {name: text for name, text in translated.items() if text}
    )


def _s3(bucket: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of one bucket, which take precedence over those of the session for all buckets."""
    key, secret = _aws(options, "access_key_id"), _aws(options, "secret_access_key")
    token, endpoint = _aws(options, "session_token", "token"), _aws(options, "endpoint_url", "endpoint")
    provider = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider" if key else ""
    if _aws(options, "skip_signature").lower() == "true":
        provider = "AnonymousAWSCredentialsProvider"
    virtual = _aws(options, "virtual_hosted_style_request").lower() == "true"
    found = {
        "access.key": key,
        "secret.key": secret,
        "session.token": token,
        "aws.credentials.provider": provider and f"{_PROVIDERS}{provider}",
        "endpoint": endpoint,
        "endpoint.region": _aws(options, "region", "default_region"),
        "path.style.access": "true" if endpoint and not virtual else "",
    }
    return {f"fs.s3a.bucket.{bucket}.{name}": text for name, text in found.items()}


def _azure(host: str, options: Mapping[str, str]) -> dict[str, str]:
    client, secret, tenant = (
        _first(options, *(f"{prefix}{name}" for prefix in ("azure_storage_", "azure_", "")))
        for name in ("client_id", "client_secret", "tenant_id")
    )
    key = _first(options, "azure_storage_account_key", "azure_storage_access_key", "account_key", "access_key")
    if not (client and secret and tenant):
        return {f"fs.azure.account.key.{host}": key}
    return {
        f"fs.azure.account.auth.type.{host}": "OAuth",
        f"fs.azure.account.oauth.provider.type.{host}": _OAUTH,
        f"fs.azure.account.oauth2.client.id.{host}": client,
        f"fs.azure.account.oauth2.client.secret.{host}": secret,
        f"fs.azure.account.oauth2.client.endpoint.{host}": f"https://login.microsoftonline.com/{tenant}/oauth2/token",
    }


def _aws(options: Mapping[str, str], *names: str) -> str:
    return _first(options, *(f"{prefix}{name}" for name in names for prefix in ("aws_", "")))


def _first(options: Mapping[str, str], *names: str) -> str:
    return next((options[name] for name in names if options.get(name)), "")


def _tried(session: Any, spec: StoreSpec, warned: set[str]) -> Access | None:
    """Let Spark look for the table's properties, which every table has."""
    access = hadoop_access(spec)
    if access is None:
        _warn(warned, f"{spec.uri} names no Azure account: set the storage option azure_storage_account_name")
        return None
    if is_connect(session) and access.uri.startswith(f"{_S3}://"):
        for name, value in access.options.items():
            session.conf.set(name, value)
    path = literal_path(access.uri_of(PROPERTIES))
    try:
        # Given twice: Spark would log the error of one path, with its stack, before it raises the error.
        _ = access.reader(session).schema("found boolean").parquet(path, path).schema
    except Exception as error:
        scheme = access.uri.partition("://")[0]
        if _MISSING.search(str(error)):
            artifact = _ARTIFACTS[scheme]
            release = f":{_hadoop_release(session)}" if artifact.startswith(_OF_HADOOP) else ""
            _warn(
                warned,
                f"Spark has no connector for {scheme}://, so that hoodie's Python workers read the files: limit what "
                "they read by columns= and where= of the call. With a connector Spark's own scan reads only what each "
                f"query needs: start the session with spark.jars.packages={artifact}{release} (docs/storage.md)",
            )
        else:
            why = masked(reason(error), normalised(dict(spec.options)))
            _warn(
                warned,
                f"Spark's connector for {scheme}:// does not open {access.uri}, so that hoodie's Python workers read "
                f"the files: {why}; see 'Spark on S3' in docs/storage.md",
            )
        return None
    return access


def _warn(warned: set[str], text: str) -> None:
    if text not in warned:
        warned.add(text)
        warnings.warn(text, HoodieWarning, stacklevel=2)


def _hadoop_release(session: Any) -> str:
    query = "SELECT java_method('org.apache.hadoop.util.VersionInfo', 'getVersion')"
    return str(session.sql(query).first()[0])
