"""Storage options and URIs of an object store, as Hadoop's connectors take them."""

from __future__ import annotations

import pytest

from hoodie.spark.connectors import Access, hadoop_access
from hoodie.storage import StoreSpec

S3 = "fs.s3a.bucket.my-bucket."
PROVIDER = "org.apache.hadoop.fs.s3a."
HOST = "acme.dfs.core.windows.net"


def access(uri: str, **options: str) -> Access:
    found = hadoop_access(StoreSpec(uri, tuple(options.items())))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://my-bucket/a b/t%20", "s3a://my-bucket/a b/t%20"),
        ("s3n://my-bucket", "s3a://my-bucket"),
        ("gcs://my-bucket/t/", "gs://my-bucket/t"),
        ("az://box/t", f"abfss://box@{HOST}/t"),
        ("abfss://box@other.dfs.core.windows.net/t", "abfss://box@other.dfs.core.windows.net/t"),
        ("abfs://box/t", f"abfs://box@{HOST}/t"),
    ],
)
def test_paths_get_the_scheme_of_hadoop(uri: str, expected: str) -> None:
    options = {"azure_storage_account_name": "acme"} if "box" in uri else {}
    found = access(uri, **options)
    assert (found.uri, found.uri_of("p=1/x.parquet")) == (expected, f"{expected}/p=1/x.parquet")


def test_without_an_account_azure_has_no_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    assert hadoop_access(StoreSpec("az://box/t")) is None
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acme")
    assert access("az://box/t").uri == f"abfss://box@{HOST}/t"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        (
            {"AWS_ACCESS_KEY_ID": "k", "secret_access_key": "s", "aws_region": "eu-west-1"},
            {
                "access.key": "k",
                "secret.key": "s",
                "endpoint.region": "eu-west-1",
                "aws.credentials.provider": f"{PROVIDER}SimpleAWSCredentialsProvider",
            },
        ),
        (
            {"access_key_id": "k", "secret_access_key": "s", "token": "t", "endpoint_url": "http://here:1"},
            {
                "access.key": "k",
                "secret.key": "s",
                "session.token": "t",
                "aws.credentials.provider": f"{PROVIDER}TemporaryAWSCredentialsProvider",
                "endpoint": "http://here:1",
                "path.style.access": "true",
            },
        ),
        (
            {"aws_skip_signature": "True", "endpoint": "https://x", "aws_virtual_hosted_style_request": "true"},
            {"aws.credentials.provider": f"{PROVIDER}AnonymousAWSCredentialsProvider", "endpoint": "https://x"},
        ),
    ],
)
def test_options_of_s3_are_of_the_bucket(options: dict[str, str], expected: dict[str, str]) -> None:
    assert access("s3://my-bucket/t", **options).options == {f"{S3}{name}": text for name, text in expected.items()}


def test_options_of_azure_and_google() -> None:
    found = access("az://box/t", account_name="acme", account_key="k")
    assert found.options == {f"fs.azure.account.key.{HOST}": "k"}
    options = {"azure_storage_client_id": "c", "azure_client_secret": "s", "azure_storage_tenant_id": "t"}
    found = access(f"abfss://box@{HOST}/t", **options)
    assert found.options[f"fs.azure.account.auth.type.{HOST}"] == "OAuth"
    assert found.options[f"fs.azure.account.oauth2.client.secret.{HOST}"] == "s"
    assert found.options[f"fs.azure.account.oauth2.client.endpoint.{HOST}"].endswith(".com/t/oauth2/token")
    found = access("gs://b/t", google_service_account="/keys/me.json")
    assert found.options == {
        "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "fs.gs.auth.service.account.json.keyfile": "/keys/me.json",
    }


def test_options_are_not_shown() -> None:
    assert "hush" not in repr(access("s3://my-bucket/t", aws_access_key_id="k", aws_secret_access_key="hush"))
