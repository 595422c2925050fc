"""What is wrong or not supported in SQL is named in words of SQL: no class of the parser is in a message."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from sqlglot import exp

import hoodie
from hoodie.errors import HoodieError
from hoodie.records.condition import Condition
from tests.support.tables import new_table

SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("l", pa.list_(pa.int32())),
    ]
)

CONDITIONS = r"""
a RLIKE s
s RLIKE '(?=x)'
s REGEXP 'a++'
regexp_like(s, '(?i)x')
regexp_extract(s, 'x', 1) = 'a'
regexp_replace(s, 'a', 'b') = 'c'
EXISTS (SELECT 1)
a IN (SELECT a FROM t)
a = (SELECT max(a) FROM t)
a > ANY (SELECT a FROM t)
a = ALL (SELECT a FROM t)
date_add(a, 1) > d
date_sub(d, 1.5) > d
date_add(DAY, 1, d) > d
datediff(d, d) = 0
date_trunc(s, at) = at
date_trunc('day', a) = at
d + INTERVAL 1 MONTH > d
1 + INTERVAL 1 DAY > 1
INTERVAL '1' DAY = INTERVAL '1' DAY
current_date() = d
current_timestamp() > at
now() > at
a & 1 = 0
a | 1 = 0
a ^ 1 = 0
~a = 0
a << 1 = 2
shiftleft(a, 1) = 2
m['k'] = 1
l[0] = 1
element_at(l, 1) = 1
size(l) = 1
array_contains(l, 's')
array_contains(l, 1.5)
array_contains(l, NULL)
array_contains(a, 1)
array(1, 2) = l
map('a', 1) = m
struct(a) = struct(1)
named_struct('a', a) = 1
count(*) > 1
sum(a) > 1
max(a) OVER () > 1
row_number() OVER (PARTITION BY a) = 1
rand() > 0.5
uuid() = 'x'
nosuch(a) = 1
a.b.c = 1
CAST(a AS ARRAY<INT>) = 1
CAST(a AS STRUCT<x: INT>) = 1
CAST(s AS INTERVAL) = 1
TRY_CAST(s AS INT) = 1
CAST(s AS DATE FORMAT 'yyyy') = d
to_date(s, 'yyyy') = d
s LIKE ANY ('a', 'b')
s LIKE ALL ('a', 'b')
s LIKE s
s NOT RLIKE '[a&&b]'
s SIMILAR TO 'a'
s COLLATE UTF8_LCASE = 'a'
greatest(a, 1) = 1
least(a, 1) = 1
pow(a, 2) = 4
sqrt(a) = 2
floor(a) = 1
ceil(a) = 1
sign(a) = 1
a DIV 1.5 = 1
md5(s) = 'x'
sha2(s, 256) = 'x'
hash(a) = 1
split(s, ',')[0] = 'a'
replace(s, 'a', 'b') = 'c'
translate(s, 'a', 'b') = 'c'
reverse(s) = 'a'
lpad(s, 3, ' ') = 'a'
initcap(s) = 'A'
concat_ws(',', s, s) = 'a'
instr(s, 'a') = 1
locate('a', s) = 1
position('a' IN s) = 1
ascii(s) = 1
unix_timestamp(at) = 1
from_unixtime(a) = 'x'
extract(year FROM d) = 2020
date_part('year', d) = 2020
weekofyear(d) = 1
dayofweek(d) = 1
last_day(d) = d
add_months(d, 1) = d
months_between(d, d) = 0
filter(l, x -> x > 1) = l
exists(l, x -> x > 1)
transform(l, x -> x + 1) = l
a BETWEEN SYMMETRIC 1 AND 2
a IS DISTINCT FROM (SELECT 1)
(a, 1) IN ((1, 1))
(a, s) = (1, 'x')
a AS b
*
:param = 1
? = a
@x = 1
DISTINCT a
SELECT 1
a; b
a =
a === 1
'unclosed
a = 1 AND
(a = 1
a = 1)
a b c
CASE a END
CASE WHEN a THEN END
a IN ()
a NOT 1
IF(a)
nvl2(a, 1, 2) = 1
decode(a, 1, 'x') = 'x'
a:b = 1
a = $$x$$
b'01' = 1
x'0' = 1
0x1F = a
a % 2.5 = 1
s + 1 = 1
d - 1.5 = d
d - d = 1
NOT s
a AND s
-s = 1
s || l = 'a'
typeof(a) = 'int'
json_tuple(s, 'a') = 1
s:field = 1
get_json_object(s, '$.a') = 'x'
input_file_name() = 'x'
monotonically_increasing_id() = 1
grouping(a) = 1
explode(l) = 1
a IS JSON
a GLOB 'x'
a OVERLAPS d
a QUALIFY 1
UNNEST(l) = 1
xpath(s, 'a') = 1
trim(s, s) = 'a'
substring(s, a, 1) = 'a'
round(a, s) = 1
round(a, -1) = 1
startswith(s, s)
contains(s, s)
hour(d) = 1
isnan(a)
length(l) = 1
upper(l) = 'A'
abs(s) = 1
m IS NULL AND m = m
l = l
CAST(a AS DECIMAL(50, 2)) = 1
CAST(a AS DECIMAL(2, 5)) = 1
CAST(a AS DECIMAL(1, 2, 3)) = 1
CAST(a AS DECIMAL(0)) = 1
CAST(a AS DECIMAL(99999999999999999999)) = 1
CAST(s AS ARRAY) = l
CAST(s AS INTERVAL DAY) = 1
""".strip().splitlines()

STATEMENTS = r"""
UPDATE
UPDATE t
UPDATE t SET
UPDATE t SET a
UPDATE t SET a =
UPDATE t SET a = 1 WHERE
UPDATE t SET a = 1 FROM s
UPDATE t SET a = 1 ORDER BY a
UPDATE t SET a = 1 LIMIT 1
UPDATE t SET a = 1 RETURNING a
UPDATE t SET a > 1
UPDATE t SET (a, b) = (1, 2)
UPDATE t SET a = DEFAULT
UPDATE t SET a = (SELECT 1)
UPDATE t JOIN s SET a = 1
WITH x AS (SELECT 1) UPDATE t SET a = 1
DELETE t
DELETE FROM
DELETE FROM t WHERE
DELETE FROM t USING s
DELETE FROM t LIMIT 1
DELETE FROM t ORDER BY a
DELETE FROM t RETURNING a
DELETE FROM t WHERE a IN (SELECT 1)
DELETE FROM t WHERE a RLIKE '(?i)x'
DELETE FROM t WHERE a =
DELETE FROM t, s WHERE a = 1
DELETE FROM t TABLESAMPLE (1 ROWS)
DELETE FROM (SELECT 1) WHERE true
DELETE FROM a.b.c.d WHERE true
DELETE FROM 5
DELETE FROM t VERSION AS OF 1 WHERE true
MERGE
MERGE INTO
MERGE INTO t USING
MERGE INTO t USING s
MERGE INTO t USING s ON
MERGE INTO t USING s ON t.id = s.id
MERGE INTO t USING s ON t.id = s.id WHEN
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN INSERT *
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN DELETE
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DO NOTHING
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a
MERGE INTO t USING s ON t.id > s.id WHEN MATCHED THEN DELETE
MERGE INTO t USING s ON t.a RLIKE s.id WHEN MATCHED THEN DELETE
MERGE INTO t USING (SELECT 1) x ON t.id = x.id WHEN MATCHED THEN DELETE
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.a RLIKE '(?i)x' THEN DELETE
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = regexp_extract(s.id, 'x', 1)
MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE
SELECT 1
INSERT INTO t VALUES (1)
CREATE TABLE t (a INT)
ALTER TABLE t ADD COLUMN x INT NOT NULL
ALTER TABLE t ADD COLUMN x FOO
ALTER TABLE t ADD COLUMNS (x INT
ALTER TABLE t ALTER COLUMN a
ALTER TABLE t RENAME COLUMN nosuch TO x
ALTER TABLE t SET TBLPROPERTIES (a)
ALTER TABLE t UNSET TBLPROPERTIES
DROP TABLE t
TRUNCATE TABLE t PARTITION (a)
DESCRIBE t
EXPLAIN SELECT 1
SHOW TABLES
CALL nosuch()
CALL show_commits
CALL show_commits(
CALL show_commits(table => )
CALL show_commits(table => 't', nosuch => 1)
CALL show_commits(table => 't', limit => 'x')
CALL show_commits(table => t.x.y)
CALL show_commits(table => a RLIKE 'x')
CALL show_commits(table => (SELECT 1))
CALL show_commits(5)
;
DELETE FROM t WHERE true; DELETE FROM t WHERE true
'x
nonsense
GRANT ALL ON t TO x
SET x = 1
""".strip().splitlines()

NAMED_PARTS = {
    "a & 1 = 0": "'a & 1'",
    "regexp_like(s, '(?i)x')": "RLIKE '(?i)x'",
    "l[0] = 1": "'l[0]'",
    "CAST(a AS ARRAY<INT>) = 1": "'ARRAY<INT>' is not supported without Spark: the type is not known",
    "CAST(a AS DECIMAL(50, 2)) = 1": "a decimal has 1 to 38 digits",
    "a =": "an operand or an argument is missing",
    "(a = 1": "Expecting )",
    "a IN (SELECT a FROM t)": "only a list of values is supported",
    "UPDATE t SET a = 1 FROM s": "UPDATE: FROM is not supported",
    "UPDATE t SET a = 1 ORDER BY a": "UPDATE: ORDER BY is not supported",
    "WITH x AS (SELECT 1) UPDATE t SET a = 1": "UPDATE: WITH is not supported",
    "DELETE FROM t TABLESAMPLE (1 ROWS)": "found also TABLESAMPLE",
    "UPDATE t JOIN s SET a = 1": "found also JOIN",
    "DELETE FROM": "(Expected table name)",
}


def _names_of_the_parser() -> frozenset[str]:
    """The names of its classes that are no words, such as RegexpLike, also in small letters."""
    found = [name for name, one in vars(exp).items() if isinstance(one, type) and issubclass(one, exp.Expression)]
    composed = [name for name in found if sum(letter.isupper() for letter in name) > 1]
    assert len(composed) > 200
    return frozenset([*composed, *(name.lower() for name in composed), "dpipe", "anonymous"])


NAMES = _names_of_the_parser()


def _check(text: str, message: str) -> None:
    assert not re.search(r"sqlglot|exp\.|<class|Token|\(\w+\) is not supported|[a-z]_ ", message), message
    words = set(re.findall(r"\w+", message)) & NAMES
    assert not [word for word in words if word.lower() not in text.lower()], message
    if text in NAMED_PARTS:
        assert NAMED_PARTS[text] in message, message


def test_conditions_that_are_wrong_or_not_supported_are_named_in_sql() -> None:
    for text in CONDITIONS:
        with pytest.raises(HoodieError) as caught:
            Condition.parse(text).row_filter(SCHEMA)
        _check(text, str(caught.value))


def test_statements_that_are_wrong_or_not_supported_are_named_in_sql() -> None:
    rows = pa.table({"id": ["a"], "a": [1]})
    table = new_table(rows.schema, rows)
    for text in (*STATEMENTS, "UPDATE t SET a = 1 WHERE a = '\ud800'"):
        with pytest.raises(HoodieError) as caught:
            hoodie.sql(None, text, tables={"t": table, "s": rows})
        _check(text, str(caught.value))
    assert len(table.history()) == 1
