"""The settings of the HBase index: what the table stores, and the options of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from hoodie import config as options
from hoodie.errors import InvalidConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class HBaseSettings:
    """Where the index is and how it is asked. Picklable.

    `identity`: a row of the HBase table has it too, so that an index of another table, or one that a build has not
    completed, is found. `ca_file`: for TLS; empty for the authorities of the system. `qps_max`: keys in a second for
    each region server; 0 for no limit.
    """

    host: str
    port: int
    table: str
    identity: str
    built: str
    is_tls: bool
    ca_file: str
    timeout_ms: int
    get_batch: int
    put_batch: int
    qps_max: int

    @classmethod
    def of(cls, stored: Mapping[str, str], properties: Mapping[str, str]) -> HBaseSettings:
        """Return the settings of a table with these stored properties, for a call with these options.

        Raises: InvalidConfigError if the call names another HBase table, or an option does not parse.
        """
        for option in (options.HBASE_TABLE, options.HBASE_IDENTITY, options.HBASE_BUILT):
            if properties.get(option.key, stored.get(option.key)) != stored.get(option.key):
                raise InvalidConfigError(
                    f"{option.key}={properties[option.key]!r}: the table has {stored.get(option.key)!r}, and only "
                    't.index.build("hbase", properties=…) changes it; remove the option'
                )
        both = (properties, stored)
        return cls(
            host=options.HBASE_THRIFT_HOST.get(*both),
            port=options.HBASE_THRIFT_PORT.get(*both),
            table=_checked(options.HBASE_TABLE.get(stored)),
            identity=options.HBASE_IDENTITY.get(stored),
            built=options.HBASE_BUILT.get(stored),
            is_tls=options.HBASE_THRIFT_SSL.get(*both),
            ca_file=options.HBASE_THRIFT_CA_FILE.get(*both),
            timeout_ms=options.HBASE_TIMEOUT_MS.get(*both),
            get_batch=options.HBASE_GET_BATCH.get(*both),
            put_batch=options.HBASE_PUT_BATCH.get(*both),
            qps_max=options.HBASE_QPS_MAX.get(*both),
        )

    @property
    def address(self) -> str:
        """`host:port` of the Thrift server."""
        return f"{self.host}:{self.port}"


def new_identity(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the identity that a new table or a build stores. Raises: InvalidConfigError without an HBase table."""
    _checked(options.HBASE_TABLE.get(properties))
    return {options.HBASE_IDENTITY.key: uuid4().hex}


def _checked(table: str) -> str:
    if not table:
        raise InvalidConfigError(
            f"index='hbase' requires {options.HBASE_TABLE.key}: the name of an HBase table that no other table uses"
        )
    return table
