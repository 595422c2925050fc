"""A table with every awkward value, and the expressions that Spark and hoodie must agree on over it."""

# ruff: noqa: E501 — a row of the table stays one line.
from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("i", pa.int32()),
        ("j", pa.int32()),
        ("l", pa.int64()),
        ("t", pa.int8()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("e", pa.float64()),
        ("p", pa.decimal128(10, 2)),
        ("q", pa.decimal128(38, 18)),
        ("s", pa.string()),
        ("Name", pa.string()),
        ("num", pa.string()),
        ("day_text", pa.string()),
        ("b", pa.bool_()),
        ("c", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("where in", pa.string()),
        ("dot.ted", pa.int32()),
        ("ints", pa.list_(pa.int32())),
        ("texts", pa.list_(pa.string())),
        ("doubles", pa.list_(pa.float64())),
        ("floats", pa.list_(pa.float32())),
        ("days", pa.list_(pa.date32())),
        ("times", pa.list_(pa.timestamp("us", "UTC"))),
        ("nest", pa.struct([("x", pa.int64()), ("Y", pa.struct([("z", pa.string())]))])),
    ]
)


def _at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


TABLE = pa.table(
    {
        "id": list(range(10)),
        "i": [1, 2, None, -3, 0, 5, 5, 7, 1073741823, -1073741824],
        "j": [1, None, None, 3, 2, -2, 5, 8, 3, 1],
        "l": [1, 2, 3, None, 0, -5, 9007199254740993, 9007199254740992, 2147483648, -9],
        "t": [1, 2, None, -3, 0, 127, -127, 7, 8, 9],
        "f": [1.5, NAN, None, -0.0, 0.0, 1.1, 16777216.0, float("inf"), -1.5, 2.5],
        "d": [5.0, NAN, None, -0.0, 0.0, 1.1, 5.0, float("inf"), float("-inf"), 2.5],
        "e": [5.0, NAN, 1.0, 0.0, NAN, 1.2, None, 3.0, float("-inf"), -2.5],
        "p": [Decimal(x) if x else None for x in "1.50 2.00 - -3.25 0.00 99999999.99 1.10 0.01 -0.01 12.34".replace("-\n", "").replace(" - ", "  ").split(" ")],
        "q": [Decimal(x) if x else None for x in ["1.5", "2", "", "-3.25", "0", "0.000000000000000001", "1.1", "3", "7", "12345678901.5"]],
        "s": ["abc", "ABC", None, "", "a%c", "a_c", "ab\ncd", "äbc", "a\\c", "abd"],
        "Name": ["it's", "x", None, "a b", "  pad ", "xxhixx", "Zoë", "日本語", "a.c", "abc"],
        "num": ["1", "2", None, "-3", "0", "05", "5", "7", "12", "9"],
        "day_text": ["2024-01-01", "2024-02-29", None, "2023-12-31", "1969-07-20", "2024-1-5", "2024-03", "2024", "2024-01-01", "2025-01-01"],
        "b": [True, False, None, True, False, None, True, False, None, True],
        "c": [True, True, True, False, False, False, None, None, None, True],
        "day": [date(2024, 1, 1), date(2024, 2, 29), None, date(2023, 12, 31), date(1969, 7, 20), date(2024, 1, 5), date(2024, 3, 1), date(2024, 1, 1), date(9999, 12, 31), date(1, 1, 1)],
        "at": [_at(2024, 1, 1), _at(2024, 2, 29, 12, 30, 15, 123000), None, _at(2023, 12, 31, 23, 59, 59, 999999), _at(1969, 7, 20, 20, 17), _at(2024, 1, 5), _at(2024, 3, 1), _at(2024, 1, 1, 0, 0, 0, 1), _at(2200, 1, 1), _at(1900, 6, 1)],
        "local": [datetime(2024, 1, 1), None, None, datetime(2023, 12, 31, 23, 59, 59), datetime(1969, 7, 20, 20, 17), datetime(2024, 1, 5), datetime(2024, 3, 1), datetime(2024, 1, 1), datetime(2200, 1, 1), datetime(1900, 6, 1)],
        "raw": [b"\x01\x02", b"", None, b"abc", b"\xff", b"\x00", b"ab", b"b", b"c", b"d"],
        "where in": ["x", "y", None, "x", "y", "z", "x", "y", "z", "x"],
        "dot.ted": [1, 2, None, 4, 5, 6, 7, 8, 9, 10],
        "ints": [[1, 2], [], None, [None], [3, None, 5], [5], [1, 1], [7, -7], [None, None], [2147483647]],
        "texts": [["a", "b"], [], None, [None], ["", None], ["ä"], ["a\n"], ["a"], ["A"], ["b"]],
        "doubles": [[5.0, NAN], [], None, [None], [-0.0], [1.1, None], [NAN, None], [float("inf")], [2.5], [1e300]],
        "floats": [[5.0, NAN], [], None, [None], [-0.0], [1.1, None], [NAN, None], [float("inf")], [2.5], [0.5]],
        "days": [[date(2024, 1, 1)], [], None, [None], [date(2024, 2, 29), None], [], [], [], [], []],
        "times": [[_at(2024, 1, 1)], [], None, [None], [_at(2024, 2, 29, 12, 30, 15, 123000)], [], [], [], [], []],
        "nest": [{"x": 1, "Y": {"z": "a"}}, {"x": None, "Y": None}, None, {"x": 3, "Y": {"z": None}}, {"x": 4, "Y": {"z": "b"}}, {"x": 5, "Y": {"z": "a"}}, {"x": 6, "Y": None}, {"x": 7, "Y": {"z": "c"}}, {"x": 8, "Y": {"z": ""}}, None],
    },
    schema=SCHEMA,
)  # fmt: skip


def listed(text: str) -> list[str]:
    """The expressions of a text: some on one subject in a line, with ` | ` between them."""
    return [expression for line in text.strip().splitlines() for expression in line.split(" | ")]


CONDITIONS = listed(r"""
i = 1 | 1 = i | i == 5 | i <> 5 | i != 5 | i < 2 | 2 > i | i <= 2 | i >= 2 | i > 1.5 | i = 1.5 | i <> 1.5 | i < 1.5
i = 2.0 | i > 3000000000 | i < 3000000000 | i <> 3000000000 | i >= -3000000000 | i > 1e0 | i < 2.5D | i <=> 5
i <=> NULL | i <=> j | NOT i <=> j | i IS DISTINCT FROM j | i = NULL | i = j | i < j | i = t | i = l
l = 9007199254740993 | l > 9007199254740992 | l = 9007199254740992D | l > 9.007199254740992e15 | l < 2147483648
t = 300 | t < 300 | t >= -3L
i = '5'
num = 5 | '5' = num | num > 1 | num = 5L | num < '5'
f = 1.5 | f = 1.1 | f > 1.1 | f < 1.1 | f >= 0 | f = CAST('NaN' AS FLOAT) | f = d | f < d
d = 5 | d = 5.0 | d <> 5.0 | d > 5 | d >= 5.0 | d < 5 | d <= 5 | NOT d > 5 | NOT d < 5 | d = -0.0D | d = 0 | d > 1.1
d = 1.1 | d = e | d <> e | d < e | d <= e | d > e | d >= e | d = double('NaN') | d < double('NaN')
d >= double('NaN') | d > double('Infinity') | d <=> e
d IN (5, 1.1) | d IN (double('NaN'), 0.0) | d NOT IN (5)
d BETWEEN 0 AND 5 | d NOT BETWEEN 0 AND 5
isnan(d)
d = '5' | d > '1.05'
p = 1.5 | p = 1.50 | p = 2 | p > 1.505 | p <> 1.505 | p < 1.1 | p <= 1.1 | p > 1e0 | p > 99999999999
p > -99999999999.999
p IN (1.5, 2, 0.01) | p NOT IN (1.5, NULL)
p = q | p < q | p > i
q > 1 | q = 0.000000000000000001
p = d
s = 'abc' | s <> 'abc' | s > 'abc' | s < 'a' | s >= '' | s = '' | s = "abc" | s = 'äbc' | s > 'z' | s <=> 'abc'
s <=> Name | s < Name | S = 'ABC' | NAME = 'x' | `name` = 'x' | `where in` = 'x'
`dot.ted` > 4 | nest.x > 3 | NEST.X = 4 | nest.y.z = 'a' | nest.Y.Z IS NULL | nest.x IS NOT NULL | nest IS NULL
s LIKE 'abc' | s LIKE 'ab%' | s LIKE '%c' | s LIKE '%b%' | s LIKE 'a_c' | s LIKE 'a\_c' | s LIKE 'a\%c'
s LIKE 'a\\\\c' | s LIKE 'a/_c' ESCAPE '/' | s LIKE 'a%c' | s LIKE '_bc' | s LIKE '%' | s LIKE '' | s LIKE 'a%d'
s NOT LIKE 'a%' | NOT s LIKE '%b%' | s LIKE NULL | s ILIKE 'AB%' | Name LIKE 'a.c' | Name LIKE '日_語'
Name LIKE '日本%'
Name = 'it\'s'
Name LIKE '%\'%'
i IN (1, 5, 7) | i IN (1, NULL) | i NOT IN (1, 5) | i NOT IN (1, NULL) | i IN (NULL) | i IN (1, 2.5, 7.0)
i IN (j, 7) | l IN (1, 2147483648) | s IN ('abc', 'ABC') | s NOT IN ('abc', '')
day IN ('2024-01-01', '2024-02-29') | day IN (DATE '2024-01-01')
i IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20)
i NOT IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20)
i NOT IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,NULL)
s IN ('1','2','3','4','5','6','7','8','9','10','11','12','13','14','15','16','17','abc')
i BETWEEN 1 AND 5 | i NOT BETWEEN 1 AND 5 | i BETWEEN j AND 7 | i BETWEEN NULL AND 5
day BETWEEN '2024-01-01' AND '2024-02-01'
i IS NULL | i IS NOT NULL | NOT i IS NULL
isnull(i) | isnotnull(i)
b | NOT b | !b | b = true | b <> c | b IS TRUE | b IS NOT TRUE | b IS FALSE | b IS NOT FALSE | b IS UNKNOWN
b AND c | b OR c | NOT (b AND c) | NOT (b OR c) | b AND NULL | b OR NULL | b = 'true' | b OR NOT b
i > 1 AND d < 5 OR s = 'abc'
(i > 1 OR d < 5) AND NOT s LIKE 'a%'
NOT (i > 1 AND s = 'abc')
NULL | true | false
1 = 1 | 1 + 1 = 2
NULL IS NULL
day = DATE '2024-01-01' | day = '2024-01-01' | day = '2024-1-1' | day >= '2024' | day > '2024-01'
day < '2024-01-01 12:00:00' | '2024-01-01' < day | day > TIMESTAMP '2024-01-01 12:00:00'
day = TIMESTAMP '2024-01-01 00:00:00' | day <= TIMESTAMP '2024-01-01 00:00:01' | day = at | day < local
day_text = day | day_text < DATE '2024-01-05'
at = TIMESTAMP '2024-01-01 00:00:00' | at = TIMESTAMP '2024-01-01 01:00:00+01:00' | at > TIMESTAMP '2024-01-01'
at > '2024-01-01' | at >= '2024-01-01 00:00:00.000001' | at < '2024-01-01T00:00:00Z' | at = DATE '2024-01-01'
at > DATE '2024-01-01'
at IN (TIMESTAMP '2024-01-05 00:00:00', TIMESTAMP '2200-01-01 00:00:00')
at = local | at <= local
local = TIMESTAMP_NTZ '2024-01-01 00:00:00' | local > '2024-01-01'
raw = X'0102' | raw > X'61'
i + 1 = 2 | i + j > 5 | i - j = 0 | i * 2 > 5
t * 2L > 5
-i > 0 | i % 2 = 1 | i % 3 = 0 | i / 2 > 1
j DIV 2 = 1
i / 2.0 = 2.5
d + 1 > 5 | d * e > 1
p + 1 = 2.5 | p * 2 = 3 | p / 3 > 0.5
q * 2 > 3 | q + p > 3
p - i > 0
coalesce(i, 0) = 0 | coalesce(i, j, 99) > 5
nvl(s, 'none') = 'none'
coalesce(i, 0.5) = 0.5
if(i > 1, s, Name) = 'ABC' | if(b, i, l) > 2
CASE WHEN i > 5 THEN 'big' WHEN i > 1 THEN 'mid' ELSE 'low' END = 'mid' | CASE WHEN b THEN 1 END = 1
CASE i WHEN 1 THEN 'one' WHEN 5 THEN 'five' END IS NULL
nullif(i, 5) IS NULL
upper(s) = 'ABC'
lower(Name) = 'zoë'
length(Name) = 3 | length(raw) = 2 | length(i) = 1
concat(s, Name) = 'abcit\'s'
s || '!' = 'abc!'
concat(s, i) LIKE 'abc%'
trim(Name) = 'pad' | ltrim(Name) = 'pad ' | rtrim(Name) = '  pad' | trim(BOTH 'x' FROM Name) = 'hi'
trim(LEADING 'x' FROM Name) = 'hixx'
substring(s, 1, 2) = 'ab' | substring(s, 2) = 'bc' | substring(s, -2) = 'bc' | substring(s, -5, 3) = 'a'
substring(s, 0, 2) = 'ab' | substr(Name, 2, 1) = '本'
abs(i) > 3 | abs(d) > 3 | abs(p) = 0.01
round(d) = 3 | round(p, 1) = 1.5 | round(p) = 2
year(day) = 2024 | month(day) > 2 | day(day) = 1 | dayofmonth(at) = 1 | year(at) < 1970 | hour(at) = 23
minute(at) = 30 | second(at) = 59 | quarter(day) = 4 | year(day_text) = 2024
to_date(day_text) = DATE '2024-01-05'
startswith(s, 'ab') | endswith(s, 'c') | contains(s, 'b')
CAST(num AS INT) > 4 | CAST(i AS STRING) = '5' | CAST(i AS DOUBLE) = 5 | CAST(p AS INT) = 1
CAST(p AS DECIMAL(10,1)) = 1.5 | CAST(q AS DECIMAL(20,0)) = 3 | CAST(i AS BOOLEAN) | CAST(b AS INT) = 1
CAST(at AS DATE) = DATE '2023-12-31' | CAST(at AS STRING) = '2024-02-29 12:30:15.123'
CAST(at AS STRING) = '2024-01-01 00:00:00' | CAST(day AS STRING) = '2024-01-01' | CAST(day AS TIMESTAMP) = at
CAST(day_text AS DATE) > DATE '2024-01-01' | CAST(day_text AS TIMESTAMP) = TIMESTAMP '2024-01-01 00:00:00'
CAST(t AS DECIMAL(5,2)) = 7 | CAST(num AS DOUBLE) = 5 | CAST(num AS DECIMAL(10,2)) = 5 | CAST(p AS STRING) = '1.50'
1.5BD = p
5S = i
date_add(day, 1) = DATE '2024-03-01' | date_add(day, -365) < DATE '2023-01-02'
date_sub(day, 1) = DATE '2023-12-31' | date_add(day, i) > day | date_sub(day, t) >= day
date_add(day, NULL) IS NULL | date_add(at, 1) = DATE '2024-03-01' | date_add(local, 1) = DATE '2024-01-01'
date_add(day_text, 1) = DATE '2024-03-01' | dateadd(day, 1) = DATE '2024-01-02'
day < date_sub(DATE '2024-03-01', 1) | day >= date_add('2024-01-31', -30) | day + 1 = DATE '2024-03-01'
day - 1 = DATE '2023-12-31' | day - INTERVAL 1 DAY = DATE '2023-12-31'
day + INTERVAL '60' DAYS = DATE '2024-03-01' | day >= DATE '2024-03-01' - INTERVAL 60 DAYS
date_trunc('year', at) = TIMESTAMP '2024-01-01 00:00:00' | date_trunc('MM', day) = DATE '2024-02-01'
date_trunc('week', day) = DATE '2024-01-01' | date_trunc('day', at) = at | date_trunc('fortnight', at) IS NULL
at >= date_trunc('month', TIMESTAMP '2024-01-31 12:00:00')
s RLIKE 'b' | s RLIKE '^a.c$' | s RLIKE 'a$' | s RLIKE 'c$' | s RLIKE '^$' | s RLIKE '' | s RLIKE '^ab\ncd$'
s RLIKE 'ab\\scd' | s RLIKE 'b$|^A' | s RLIKE '(?:^ab[cd])$' | s RLIKE '[^a-z]' | s RLIKE '^[\\w%]{3}$'
s RLIKE '^[^\\w]' | s RLIKE 'a\\\\c' | s RLIKE r'a\\c' | s RLIKE 'a\\_c' | s RLIKE '^.bc' | s RLIKE NULL
s NOT RLIKE 'a'
s REGEXP 'b.'
regexp(s, 'b')
regexp_like(Name, '^日.語$')
Name RLIKE r'\d' | Name RLIKE 'x{2,}?h' | Name RLIKE r'^\s+pad\s*\z' | i RLIKE '^5$'
day_text RLIKE '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'
round(d, 1) = 1.1 | round(f, 1) = 1.1 | round(e, 0) = -3
array_contains(ints, 5) | array_contains(ints, 5L) | array_contains(ints, 3000000000) | array_contains(ints, i)
array_contains(ints, l) | NOT array_contains(ints, 1) | array_contains(texts, 'a') | array_contains(texts, s)
array_contains(texts, '') | array_contains(doubles, 5) | array_contains(doubles, 1.1)
array_contains(doubles, 0.0D) | array_contains(doubles, double('NaN')) | array_contains(doubles, d)
array_contains(floats, 1.1) | array_contains(floats, f) | array_contains(floats, d)
array_contains(days, DATE '2024-02-29') | array_contains(days, day) | array_contains(times, at)
array_contains(times, TIMESTAMP '2024-01-01 00:00:00') AND id = 0
""")

# Spark's older mode widens float and int to float, and finds 16777217 equal to 16777216.
ONLY_IN_ANSI_MODE = ["f = 16777217"]

# Spark raises on these in ANSI mode; hoodie gives NULL, as Spark's older mode does.
NULL_OUTSIDE_ANSI_MODE = listed(r"""
i / 0 > 1 | i / j > 0 | 100 / i > 10 | i / (j - 1) IS NULL | i % j = 0 | i % (j - 1) IS NULL | i DIV (j - 1) > 0
p / (j - 1) > 0
d / 0 IS NULL
CAST(Name AS INT) IS NULL | CAST(s AS DOUBLE) IS NULL | CAST(s AS DATE) IS NULL | CAST(s AS BOOLEAN) IS NULL
CAST(Name AS TIMESTAMP) IS NULL | CAST(Name AS DECIMAL(5,2)) IS NULL
""")

PROJECTIONS = listed(r"""
i + l
t + i
i * 2 | i * p
p * p | p + q
q * p
p / 3
q / 3
l DIV 3 | l % 4
f * f | f + d
d * 1.1
-p
abs(q)
round(p, 1) | round(q, 3) | round(d)
length(s)
substring(Name, 2, 3)
concat(s, '-', Name)
upper(Name)
upper('straße ﬁn ŉ ᾳ և ΐ')
lower('İx ΟΔΌΣ ΣΣ Σ ẞ')
coalesce(p, i)
if(b, 1, 2.5)
CASE WHEN b AND id < 9 THEN day ELSE at END
CAST(at AS STRING) | CAST(local AS STRING) | CAST(at AS DATE) | CAST(d AS FLOAT) | CAST(p AS DOUBLE)
CAST(q AS DECIMAL(12,1))
nest.x + 1
year(at) | quarter(at)
if(id < 8, date_add(day, i % 1000), NULL)
date_sub(at, t)
if(id < 8, day + t, NULL) | if(id < 8, day - INTERVAL 400 DAYS, NULL)
date_trunc('YEAR', at) | date_trunc('yy', local) | date_trunc('quarter', at) | date_trunc('mon', at)
date_trunc('week', at) | date_trunc('dd', at) | date_trunc('hour', at) | date_trunc('minute', at)
date_trunc('second', at) | date_trunc('millisecond', at) | date_trunc('microsecond', at)
if(id < 8, date_trunc('month', day), NULL)
date_trunc('month', day_text) | date_trunc('', at) | date_trunc(NULL, at)
round(d, 1) | round(d / 3, 2) | round(f, 2) | round(l / 7, 3) | round(e * 1.005, 2) | round(d * 1e-20, 5)
round(d * 1e20, 5) | round(-d / 1000, 2)
""")

DIVISIONS_BY_ZERO = ["p / q", "q / p", "p / i", "i / j", "d / e", "i % j", "i DIV j", "l % j"]
