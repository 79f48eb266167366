-- The questions of questions.duckdb.sql for ClickHouse. Table: moulsniff schema --sql clickhouse.

-- 1. The three slowest replies of each day.
SELECT formatDateTime(time, '%Y-%m-%d', 'UTC') AS day, protocol, message, elapsed_ms
FROM (SELECT *, row_number() OVER (PARTITION BY toDate(time, 'UTC') ORDER BY elapsed_ms DESC, protocol, record) AS place
      FROM records WHERE elapsed_ms IS NOT NULL)
WHERE place <= 3
ORDER BY day, elapsed_ms DESC, protocol, message;

-- 2. What was refused, and why.
SELECT protocol, message, JSONExtractString(refused, 'name') AS reason, count() AS n
FROM records WHERE refused IS NOT NULL
GROUP BY ALL ORDER BY n DESC, protocol, message, reason;

-- 3. Players of Myst Online that entered an age, in each hour.
SELECT formatDateTime(time, '%Y-%m-%d %H', 'UTC') AS hour, uniqExact(JSONExtractUInt(fields, 'player_int')) AS players
FROM records WHERE message = 'Cli2Game_JoinAgeRequest'
GROUP BY hour ORDER BY hour;

-- 4. Requests that were never answered.
SELECT protocol, service, message, count() AS n, max(waited_ms) AS longest_ms
FROM records WHERE event = 'unanswered'
GROUP BY ALL ORDER BY n DESC, protocol, service, message;

-- 5. Payload of each service, in bytes.
SELECT protocol, service, sum(JSONExtractInt(bytes, 'payload')) AS payload
FROM records WHERE event = 'stream_end'
GROUP BY ALL ORDER BY payload DESC, protocol, service;

-- 6. How much of it could not be decoded, in bytes a million.
SELECT protocol, service, intDiv(sum(JSONExtractInt(bytes, 'undecoded')) * 1000000, greatest(sum(JSONExtractInt(bytes, 'payload')), 1)) AS undecoded
FROM records WHERE event = 'stream_end'
GROUP BY ALL ORDER BY undecoded DESC, protocol, service;

-- 7. The most frequent messages.
SELECT protocol, message, count() AS n
FROM records WHERE event IS NULL
GROUP BY ALL ORDER BY n DESC, protocol, message LIMIT 20;

-- 8. How connections ended.
SELECT protocol, service, `end`, count() AS n
FROM records WHERE event = 'stream_end'
GROUP BY ALL ORDER BY protocol, service, `end`;

-- 9. How fast each reply came: how many, the mean and the slowest, in ms.
SELECT protocol, message, count() AS n, round(avg(elapsed_ms), 2) AS mean_ms, max(elapsed_ms) AS max_ms
FROM records WHERE elapsed_ms IS NOT NULL
GROUP BY ALL ORDER BY max_ms DESC, protocol, message;

-- 10. What is odd about messages, by severity.
SELECT protocol, JSONExtractString(problem, 'severity') AS severity, JSONExtractString(problem, 'text') AS problem_text, count() AS n
FROM (SELECT protocol, arrayJoin(JSONExtractArrayRaw(assumeNotNull(problems))) AS problem FROM records WHERE event IS NULL AND problems IS NOT NULL)
GROUP BY ALL ORDER BY n DESC, protocol, severity, problem_text;
