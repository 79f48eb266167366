-- The questions of questions.duckdb.sql for SQLite. Table and view: moulsniff schema --sql sqlite.

-- 1. The three slowest replies of each day.
SELECT day, protocol, message, elapsed_ms
FROM (SELECT substr(time, 1, 10) AS day, protocol, message, elapsed_ms,
          row_number() OVER (PARTITION BY substr(time, 1, 10) ORDER BY elapsed_ms DESC, protocol, record) AS place
      FROM records WHERE elapsed_ms IS NOT NULL)
WHERE place <= 3
ORDER BY day, elapsed_ms DESC, protocol, message;

-- 2. What was refused, and why.
SELECT protocol, message, refused ->> '$.name' AS reason, count(*) AS n
FROM records WHERE refused IS NOT NULL
GROUP BY 1, 2, 3 ORDER BY n DESC, protocol, message, reason;

-- 3. Players of Myst Online that entered an age, in each hour.
SELECT substr(replace(time, 'T', ' '), 1, 13) AS hour, count(DISTINCT fields ->> '$.player_int') AS players
FROM records WHERE message = 'Cli2Game_JoinAgeRequest'
GROUP BY 1 ORDER BY hour;

-- 4. Requests that were never answered.
SELECT protocol, service, message, count(*) AS n, max(waited_ms) AS longest_ms
FROM records WHERE event = 'unanswered'
GROUP BY 1, 2, 3 ORDER BY n DESC, protocol, service, message;

-- 5. Payload of each service, in bytes.
SELECT protocol, service, sum(bytes ->> '$.payload') AS payload
FROM records WHERE event = 'stream_end'
GROUP BY 1, 2 ORDER BY payload DESC, protocol, service;

-- 6. How much of it could not be decoded, in bytes a million.
SELECT protocol, service, sum(bytes ->> '$.undecoded') * 1000000 / max(sum(bytes ->> '$.payload'), 1) AS undecoded
FROM records WHERE event = 'stream_end'
GROUP BY 1, 2 ORDER BY undecoded DESC, protocol, service;

-- 7. The most frequent messages.
SELECT protocol, message, count(*) AS n
FROM records WHERE event IS NULL
GROUP BY 1, 2 ORDER BY n DESC, protocol, message LIMIT 20;

-- 8. How connections ended.
SELECT protocol, service, "end", count(*) AS n
FROM records WHERE event = 'stream_end'
GROUP BY 1, 2, 3 ORDER BY protocol, service, "end";

-- 9. How fast each reply came: how many, the mean and the slowest, in ms.
SELECT protocol, message, count(*) AS n, round(avg(elapsed_ms), 2) AS mean_ms, max(elapsed_ms) AS max_ms
FROM records WHERE elapsed_ms IS NOT NULL
GROUP BY 1, 2 ORDER BY max_ms DESC, protocol, message;

-- 10. What is odd about messages, by severity.
SELECT records.protocol, problem.value ->> '$.severity' AS severity, problem.value ->> '$.text' AS problem_text, count(*) AS n
FROM records, json_each(records.problems) AS problem WHERE event IS NULL
GROUP BY 1, 2, 3 ORDER BY n DESC, records.protocol, severity, problem_text;
