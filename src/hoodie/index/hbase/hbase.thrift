// The part of HBase's Thrift 2 interface that hoodie calls. Field and argument numbers are those of
// hbase-thrift/src/main/resources/org/apache/hadoop/hbase/thrift2/hbase.thrift (Apache License 2.0); fields that are left out are
// optional there, and a reader skips those it does not know.

struct TTimeRange {
  1: required i64 minStamp,
  2: required i64 maxStamp
}

struct TColumn {
  1: required binary family,
  2: optional binary qualifier,
  3: optional i64 timestamp
}

struct TColumnValue {
  1: required binary family,
  2: required binary qualifier,
  3: required binary value,
  4: optional i64 timestamp
}

struct TResult {
  1: optional binary row,
  2: required list<TColumnValue> columnValues
}

struct TGet {
  1: required binary row,
  2: optional list<TColumn> columns,
  5: optional i32 maxVersions
}

struct TPut {
  1: required binary row,
  2: required list<TColumnValue> columnValues,
  3: optional i64 timestamp
}

struct TScan {
  1: optional binary startRow,
  2: optional binary stopRow,
  3: optional list<TColumn> columns,
  4: optional i32 caching,
  5: optional i32 maxVersions
}

struct TServerName {
  1: required string hostName,
  2: optional i32 port
}

struct THRegionInfo {
  1: required i64 regionId,
  2: required binary tableName
}

struct THRegionLocation {
  1: required TServerName serverName,
  2: required THRegionInfo regionInfo
}

struct TTableName {
  1: optional binary ns,
  2: required binary qualifier
}

struct TColumnFamilyDescriptor {
  1: required binary name,
  10: optional i32 maxVersions,
  13: optional i32 timeToLive
}

struct TTableDescriptor {
  1: required TTableName tableName,
  2: optional list<TColumnFamilyDescriptor> columns
}

exception TIOError {
  1: optional string message
}

exception TIllegalArgument {
  1: optional string message
}

service THBaseService {
  list<TResult> getMultiple(1: required binary table, 2: required list<TGet> tgets) throws (1: TIOError io),
  void putMultiple(1: required binary table, 2: required list<TPut> tputs) throws (1: TIOError io),
  i32 openScanner(1: required binary table, 2: required TScan tscan) throws (1: TIOError io),
  list<TResult> getScannerRows(1: required i32 scannerId, 2: i32 numRows) throws (1: TIOError io, 2: TIllegalArgument ia),
  void closeScanner(1: required i32 scannerId) throws (1: TIOError io, 2: TIllegalArgument ia),
  list<THRegionLocation> getAllRegionLocations(1: required binary table) throws (1: TIOError io),
  TTableDescriptor getTableDescriptor(1: required TTableName table) throws (1: TIOError io),
  bool tableExists(1: TTableName tableName) throws (1: TIOError io),
  void createTable(1: required TTableDescriptor desc, 2: optional list<binary> splitKeys) throws (1: TIOError io),
  void enableTable(1: required TTableName tableName) throws (1: TIOError io),
  bool isTableDisabled(1: required TTableName tableName) throws (1: TIOError io),
  void disableTable(1: required TTableName tableName) throws (1: TIOError io),
  void truncateTable(1: required TTableName tableName, 2: required bool preserveSplits) throws (1: TIOError io)
}
