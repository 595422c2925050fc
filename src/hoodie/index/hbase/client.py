"""A client of HBase's Thrift 2 server: batched reads and writes of rows, with a rate limit and clear errors.

Requests are safe to repeat: a put has its time stamp. So a request whose connection drops is sent again over a new one.
`HBaseSettings` has what the table stores of its index, and the options of one call.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import io
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Final
from uuid import uuid4

from hoodie.config import indexes
from hoodie.errors import IndexUnavailableError, InvalidConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class HBaseSettings:
    """The address of the index, and its settings. Picklable.

    `identity`: a row of the HBase table has it too, which reveals the index of another table, and an incomplete
    build. `ca_file`: for TLS; empty for the authorities of the system. `qps_max`: keys in a second for
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
        for option in (indexes.HBASE_TABLE, indexes.HBASE_IDENTITY, indexes.HBASE_BUILT):
            if properties.get(option.key, stored.get(option.key)) != stored.get(option.key):
                raise InvalidConfigError(
                    f"{option.key}={properties[option.key]!r}: the table has {stored.get(option.key)!r}, and only "
                    't.index.build("hbase", properties=…) changes it; remove the option'
                )
        both = (properties, stored)
        return cls(
            host=indexes.HBASE_THRIFT_HOST.get(*both),
            port=indexes.HBASE_THRIFT_PORT.get(*both),
            table=_checked_table(indexes.HBASE_TABLE.get(stored)),
            identity=indexes.HBASE_IDENTITY.get(stored),
            built=indexes.HBASE_BUILT.get(stored),
            is_tls=indexes.HBASE_THRIFT_SSL.get(*both),
            ca_file=indexes.HBASE_THRIFT_CA_FILE.get(*both),
            timeout_ms=indexes.HBASE_TIMEOUT_MS.get(*both),
            get_batch=indexes.HBASE_GET_BATCH.get(*both),
            put_batch=indexes.HBASE_PUT_BATCH.get(*both),
            qps_max=indexes.HBASE_QPS_MAX.get(*both),
        )


def new_identity(properties: Mapping[str, str], _record_key: Sequence[str] = ()) -> dict[str, str]:
    """Return the identity that a new table or a build stores. Raises: InvalidConfigError without an HBase table."""
    _checked_table(indexes.HBASE_TABLE.get(properties))
    return {indexes.HBASE_IDENTITY.key: uuid4().hex}


def _checked_table(table: str) -> str:
    if not table:
        raise InvalidConfigError(
            f"index='hbase' requires {indexes.HBASE_TABLE.key}: the name of an HBase table that no other table uses"
        )
    return table


FAMILY: Final = b"_s"
"""Column family of the index, as in the JVM's HBase index. On disk: do not change."""
ALL_VERSIONS: Final = 2**31 - 1

_TRIES = 3
_PAUSE_SECONDS = 0.2
_SCAN_ROWS = 1000

Cells = Sequence[tuple[bytes, bytes]]
"""Qualifiers and values of the cells of one version of a row."""
Row = Any
"""A `TResult` of the interface: its row key, and its cells with time stamps."""


@cache
def _interface() -> ModuleType:
    """Return the interface, parsed once per process. Raises: InvalidConfigError without the client library."""
    try:
        import thriftpy2
    except ImportError as error:
        raise InvalidConfigError("the HBase index requires a client library: pip install 'hoodie[hbase]'") from error
    text = (importlib.resources.files(__package__) / "hbase.thrift").read_text("utf-8")
    found: ModuleType = thriftpy2.load_fp(io.StringIO(text), "hoodie_hbase_thrift")
    return found


def has_client_library() -> bool:
    """Return whether the client library is installed."""
    return importlib.util.find_spec("thriftpy2") is not None


class HBaseClient:
    """One connection to a Thrift server, opened at the first request. Use it as a context manager; not thread-safe.

    `rows_per_second`: the limit of this connection; 0 for none.

    Raises: IndexUnavailableError, in each method.
    """

    def __init__(self, settings: HBaseSettings, rows_per_second: float = 0.0) -> None:
        self._settings = settings
        self._types = _interface()
        self._client: Any = None
        self._pace = _Pace(rows_per_second)
        self._table = settings.table.encode()
        self._tls = _tls_of(settings)

    def __enter__(self) -> HBaseClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def get(self, keys: Sequence[bytes]) -> Iterator[Row]:
        """Yield the rows of these keys with all versions, in their order; a row without cells does not exist.

        Memory: the answer to one batch.
        """
        types, size = self._types, self._settings.get_batch
        columns = [types.TColumn(family=FAMILY)]
        for start in range(0, len(keys), size):
            batch = keys[start : start + size]
            self._pace.wait(len(batch))
            gets = [types.TGet(row=key, columns=columns, maxVersions=ALL_VERSIONS) for key in batch]
            yield from self._call("getMultiple", self._table, gets)

    def put(self, rows: Iterable[tuple[bytes, Cells]], moment_ms: int) -> None:
        """Write one version of each row, with the time stamp `moment_ms`. Memory: one batch.

        Some of the rows may be written if it raises an error.
        """
        types, batch = self._types, list[Any]()
        known: dict[Cells, list[Any]] = {}
        for key, cells in rows:
            values = known.get(cells)
            if values is None:
                values = known[cells] = [types.TColumnValue(FAMILY, name, value) for name, value in cells]
            batch.append(types.TPut(row=key, columnValues=values, timestamp=moment_ms))
            if len(batch) >= self._settings.put_batch:
                self._put(batch)
                batch = []
        self._put(batch)

    def _put(self, puts: list[Any]) -> None:
        if puts:
            self._pace.wait(len(puts))
            self._call("putMultiple", self._table, puts)

    def scan(self) -> Iterator[Row]:
        """Yield all rows with all versions, at most as fast as the limit. A scan whose connection drops fails."""
        size = self._pace.rows_of_a_second(_SCAN_ROWS)
        scan = self._types.TScan(columns=[self._types.TColumn(family=FAMILY)], maxVersions=ALL_VERSIONS, caching=size)
        number = self._call("openScanner", self._table, scan, tries=1)
        while rows := self._call("getScannerRows", number, size, tries=1):
            yield from rows
            self._pace.wait(len(rows))
        self._call("closeScanner", number, tries=1)

    def has_table(self) -> bool:
        """Return whether the HBase table exists."""
        return bool(self._call("tableExists", self._table_name()))

    def create_table(self) -> None:
        """Create the HBase table, with a column family that keeps all versions."""
        types = self._types
        family = types.TColumnFamilyDescriptor(name=FAMILY, maxVersions=ALL_VERSIONS)
        description = types.TTableDescriptor(tableName=self._table_name(), columns=[family])
        self._call("createTable", description, None, tries=1)

    def is_disabled(self) -> bool:
        """Return whether the HBase table is disabled: its rows cannot be read."""
        return bool(self._call("isTableDisabled", self._table_name()))

    def enable_table(self) -> None:
        """Enable a table that is disabled."""
        self._call("enableTable", self._table_name(), tries=1)

    def truncate_table(self) -> None:
        """Delete all rows."""
        self._call("disableTable", self._table_name(), tries=1)
        self._call("truncateTable", self._table_name(), False, tries=1)

    def check_table(self) -> None:
        """Check that the HBase table keeps every version. Raises: InvalidConfigError if not."""
        described = self._call("getTableDescriptor", self._table_name())
        family = next((found for found in described.columns or () if found.name == FAMILY), None)
        forever = (ALL_VERSIONS, None)
        if family is None or family.maxVersions != ALL_VERSIONS or family.timeToLive not in forever:
            raise InvalidConfigError(
                f"the HBase table {self._settings.table!r} must keep all versions of the column family _s for ever; "
                f"in the HBase shell: alter '{self._settings.table}', "
                f"{{NAME => '_s', VERSIONS => {ALL_VERSIONS}, TTL => 'FOREVER'}}"
            )

    def region_servers(self) -> int:
        """Return the number of servers that have regions of the table."""
        found = self._call("getAllRegionLocations", self._table)
        return len({(place.serverName.hostName, place.serverName.port) for place in found})

    def _table_name(self) -> Any:
        space, _, name = self._settings.table.rpartition(":")
        return self._types.TTableName(ns=(space or "default").encode(), qualifier=name.encode())

    def _call(self, method: str, *arguments: Any, tries: int = _TRIES) -> Any:
        """Send a request, over a new connection if the present one drops; an answer that is late is an error."""
        from thriftpy2.thrift import TException
        from thriftpy2.transport import TTransportException

        for number in range(1, tries + 1):
            try:
                return getattr(self._connected(), method)(*arguments)
            except TimeoutError as error:
                self._close()
                raise self._unavailable(f"did not answer within {self._settings.timeout_ms:,} ms", error) from error
            except (OSError, EOFError, TTransportException) as error:
                self._close()
                refused = _certificate_error(error)
                if refused is not None:
                    raise self._unavailable("has a certificate that is not trusted", refused) from error
                if number == tries:
                    what = "dropped the connection, or cannot be reached"
                    raise self._unavailable(what, error) from error
                time.sleep(_PAUSE_SECONDS * number)
            except TException as error:
                self._close()
                raise self._unavailable(f"refused {method}", error) from error
        raise AssertionError("unreachable: the last try returns or raises")

    def _connected(self) -> Any:
        if self._client is None:
            from thriftpy2.rpc import make_client

            settings = self._settings
            service = self._types.THBaseService
            self._client = make_client(
                service, settings.host, settings.port, timeout=settings.timeout_ms, ssl_context=self._tls
            )
        return self._client

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _unavailable(self, what: str, error: BaseException) -> IndexUnavailableError:
        settings = self._settings
        reason = str(getattr(error, "message", None) or error).strip().split("\n")[0][:300]
        return IndexUnavailableError(
            f"HBase's Thrift 2 server at {settings.host}:{settings.port} {what} ({type(error).__name__}: {reason}), so "
            f"the HBase index {settings.table!r} cannot be used; nothing was committed. Check that the server runs "
            f"(hbase thrift2 start), and {indexes.HBASE_THRIFT_HOST.key}, {indexes.HBASE_THRIFT_PORT.key} and "
            f"{indexes.HBASE_TIMEOUT_MS.key}; then write again"
        )


def _certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return the error of a certificate that the client library met as it connected."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLCertVerificationError):
        found = found.__cause__ or found.__context__
    return found


def _tls_of(settings: HBaseSettings) -> ssl.SSLContext | None:
    """Return what a TLS connection trusts; None for a plain socket. Raises: InvalidConfigError for a wrong file."""
    if not settings.is_tls:
        return None
    try:
        return ssl.create_default_context(cafile=settings.ca_file or None)
    except OSError as error:
        option = indexes.HBASE_THRIFT_CA_FILE.key
        raise InvalidConfigError(
            f"{option}={settings.ca_file!r}: expected a PEM file with certificates of authorities ({error})"
        ) from error


class _Pace:
    """Lets at most a number of rows pass in a second; 0 for no limit."""

    def __init__(
        self,
        rows_per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rows_per_second
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()

    def rows_of_a_second(self, rows_max: int) -> int:
        """Return how many rows may pass in a second, at least 1 and at most `rows_max`."""
        return rows_max if self._rate <= 0 else max(1, min(rows_max, int(self._rate)))

    def wait(self, rows: int) -> None:
        """Wait until these rows may pass."""
        if self._rate <= 0:
            return
        now = self._clock()
        if now < self._free_at:
            self._sleep(self._free_at - now)
        self._free_at = max(now, self._free_at) + rows / self._rate
