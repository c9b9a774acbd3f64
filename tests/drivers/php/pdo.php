<?php
// Scenarios for PHP's PDO with its pgsql driver, and for the older pgsql functions.
// Usage: php pdo.php URL [native | emulated | functions]
declare(strict_types=1);

$url = parse_url($argv[1]);
$mode = $argv[2] ?? 'native';
$scenario = '';

function dsn(array $url, string $more = ''): string
{
    return sprintf("host=%s port=%d dbname=%s user=%s%s", $url['host'], $url['port'], ltrim($url['path'], '/'), $url['user'], $more);
}

function connection(string $more = ''): PDO
{
    global $url, $mode;
    return new PDO('pgsql:' . dsn($url, $more), null, null, [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_NUM,
        PDO::ATTR_EMULATE_PREPARES => $mode === 'emulated',
    ]);
}

function tell(string $step, array $what): void
{
    global $scenario;
    $line = ['scenario' => $scenario, 'step' => $step] + $what;
    echo json_encode($line, JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR), "\n";
}

function step(string $name, callable $action): void
{
    try {
        tell($name, ['value' => $action()]);
    } catch (PDOException $error) {
        tell($name, ['error' => ['code' => $error->getCode(), 'info' => $error->errorInfo, 'text' => $error->getMessage()]]);
    }
}

function run(PDO $c, string $sql, array $values = []): array
{
    $statement = $c->prepare($sql);
    foreach (array_values($values) as $at => $value) {
        $type = is_int($value) ? PDO::PARAM_INT : (is_bool($value) ? PDO::PARAM_BOOL : (is_null($value) ? PDO::PARAM_NULL : PDO::PARAM_STR));
        $statement->bindValue($at + 1, $value, $type);
    }
    $statement->execute();
    $told = [$statement->rowCount()];
    if ($statement->columnCount() > 0) {
        for ($at = 0; $at < $statement->columnCount(); $at++) {
            $meta = $statement->getColumnMeta($at);
            $told[] = [$meta['name'], $meta['native_type'] ?? null, $meta['len'] ?? null];
        }
        $told[] = array_map(fn ($row) => array_map(fn ($v) => is_resource($v) ? 'stream:' . bin2hex(stream_get_contents($v)) : $v, $row), $statement->fetchAll());
    }
    return $told;
}

$values = [
    'small' => -3, 'whole' => 70000, 'big' => PHP_INT_MAX, 'single' => '1.5', 'wide' => '0.1', 'exact' => '3.141593',
    'words' => "it's \\ \"q\" üé中 ?\n", 'short' => 'sh', 'padded' => 'p', 'yes' => true, 'day' => '2024-02-29', 'clock' => '01:02:03.000004',
    'local_at' => '2000-01-02 03:04:05.000006', 'at' => '2024-07-01 00:00:00+05:30', 'span' => '3 days', 'tag' => '00000000-0000-0000-0000-000000000005',
    'doc' => '{"a": 1}', 'docb' => '[1, null]', 'numbers' => '{1,NULL,3}', 'names' => '{a,"b\'c"}', 'feeling' => 'ok', 'address' => '10.0.0.1', 'above' => 5,
];

$scenarios = [];

$scenarios['schema'] = function (PDO $c): void {
    foreach (explode("\n\n", file_get_contents(__DIR__ . '/../schema.sql')) as $number => $block) {
        step("block $number", fn () => $c->exec($block));
    }
};

$scenarios['kinds'] = function (PDO $c) use ($values): void {
    $sql = 'INSERT INTO kinds (' . implode(', ', array_keys($values)) . ') VALUES (' . implode(', ', array_fill(0, count($values), '?')) . ')';
    step('row', fn () => run($c, $sql, $values));
    step('last id', fn () => $c->lastInsertId());
    step('returned', fn () => run($c, "$sql RETURNING *", $values));
    step('nothing', fn () => run($c, $sql, array_fill(0, count($values), null)));
    foreach ($values as $name => $value) {
        step("only $name", fn () => run($c, "INSERT INTO kinds ($name) VALUES (?) RETURNING id, $name", [$value]));
    }
    step('bytes', function () use ($c) {
        $statement = $c->prepare('INSERT INTO kinds (bytes) VALUES (:bytes) RETURNING bytes');
        $statement->bindValue('bytes', implode('', array_map('chr', range(0, 255))), PDO::PARAM_LOB);
        $statement->execute();
        return bin2hex(stream_get_contents($statement->fetch()[0]));
    });
    step('read', fn () => run($c, 'SELECT * FROM kinds ORDER BY id'));
};

$scenarios['generated'] = function (PDO $c): void {
    run($c, 'INSERT INTO parent (id, name) VALUES (?, ?)', [1, 'one']);
    for ($n = 0; $n < 3; $n++) {
        step("child $n", fn () => run($c, 'INSERT INTO child (parent_id, quantity) VALUES (?, ?)', [1, 5]));
        step("last id $n", fn () => $c->lastInsertId());
        step("last id of $n", fn () => $c->lastInsertId('child_id_seq'));
    }
    step('exec', fn () => $c->exec("INSERT INTO child (parent_id, quantity) VALUES (1, 6)"));
    step('last id of exec', fn () => $c->lastInsertId());
    step('returning', fn () => run($c, 'INSERT INTO child (parent_id) VALUES (?) RETURNING id', [1]));
    $other = connection();
    step('not here', fn () => $other->lastInsertId());
};

$scenarios['writes'] = function (PDO $c): void {
    for ($n = 1; $n <= 5; $n++) {
        step("insert $n", fn () => run($c, 'INSERT INTO plain (id, a, b) VALUES (?, ?, ?)', [$n, $n, "it's"]));
    }
    foreach ([1, 99] as $n) {
        step("update $n", fn () => run($c, 'UPDATE plain SET a = a + ? WHERE id = ?', [10, $n]));
        step("returning $n", fn () => run($c, 'UPDATE plain SET a = a + ? WHERE id = ? RETURNING a', [10, $n]));
        step("delete $n", fn () => run($c, 'DELETE FROM plain WHERE id = ?', [$n]));
        step("exec $n", fn () => $c->exec("UPDATE plain SET b = 'exec' WHERE id = $n"));
    }
    step('named', function () use ($c) {
        $statement = $c->prepare('INSERT INTO plain (id, a, b) VALUES (:id, :a, :b)');
        return [$statement->execute(['id' => 6, 'a' => 7, 'b' => 'named']), $statement->rowCount()];
    });
    step('strings', function () use ($c) {
        $statement = $c->prepare('INSERT INTO plain (id, a, b) VALUES (?, ?, ?)');
        return [$statement->execute(['7', '8', '9']), $statement->rowCount(), $c->lastInsertId('child_id_seq')];
    });
    for ($n = 0; $n < 2; $n++) {
        step("upsert $n", fn () => run($c, 'INSERT INTO counter AS k VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n', ['u', 3]));
        step("ignore $n", fn () => run($c, 'INSERT INTO counter VALUES (?, ?) ON CONFLICT DO NOTHING', ['w', 3]));
    }
};

$scenarios['refused'] = function (PDO $c): void {
    $cases = [
        'unique' => ['INSERT INTO parent (id, name) VALUES (?, ?)', [2, 'one']],
        'primary' => ['INSERT INTO parent (id, name) VALUES (?, ?)', [1, 'two']],
        'check' => ["INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, ?, ?, '2000-01-01')", [1, -1]],
        'foreign' => ['INSERT INTO child (parent_id) VALUES (?)', [77]],
        'not null' => ['INSERT INTO parent (id, name) VALUES (?, ?)', [3, null]],
        'too long' => ['INSERT INTO child (parent_id, label) VALUES (?, ?)', [1, str_repeat('x', 11)]],
        'range' => ['INSERT INTO kinds (small) VALUES (?)', [40000]],
        'type' => ['INSERT INTO plain (id, a) VALUES (?, ?)', [50, 'abc']],
        'float' => ['INSERT INTO plain (id, a) VALUES (?, ?)', [50, '1.5']],
        'table' => ['INSERT INTO nowhere VALUES (?)', [1]],
        'column' => ['INSERT INTO plain (nothing) VALUES (?)', [1]],
        'syntax' => ['INSERT INTO plain (id VALUES (?)', [1]],
        'late' => ['INSERT INTO late VALUES (?, ?)', [1, 999]],
        'word' => ['INSERT INTO noisy VALUES (?, ?)', [1, 'word']],
        'refuse' => ['INSERT INTO noisy VALUES (?, ?)', [3, 'refuse']],
        'goes on' => ['INSERT INTO plain (id) VALUES (?)', [51]],
    ];
    foreach ($cases as $name => [$sql, $bound]) {
        step($name, fn () => run($c, $sql, $bound));
    }
};

$scenarios['transactions'] = function (PDO $c): void {
    $c->beginTransaction();
    step('insert', fn () => run($c, 'INSERT INTO plain (id) VALUES (?)', [100]));
    step('inside', fn () => $c->inTransaction());
    $c->exec('SAVEPOINT s');
    step('duplicate', fn () => run($c, 'INSERT INTO plain (id) VALUES (?)', [100]));
    step('failed', fn () => run($c, 'SELECT 1'));
    step('back', fn () => $c->exec('ROLLBACK TO s'));
    step('commit', fn () => $c->commit());
    $c->beginTransaction();
    run($c, 'INSERT INTO plain (id) VALUES (?)', [101]);
    step('rollback', fn () => $c->rollBack());
    step('script', fn () => $c->exec('INSERT INTO plain (id) VALUES (102); INSERT INTO plain (id) VALUES (103)'));
    step('bad script', fn () => $c->exec('INSERT INTO plain (id) VALUES (104); INSERT INTO plain (id) VALUES (103)'));
    $c->beginTransaction();
    run($c, 'INSERT INTO late VALUES (?, ?)', [2, 999]);
    step('late', fn () => $c->commit());
    if ($c->inTransaction()) {
        $c->rollBack();
    }
    step('left', fn () => run($c, 'SELECT id FROM plain WHERE id >= 100 ORDER BY id'));
};

$scenarios['session'] = function (PDO $c): void {
    $insert = $c->prepare('INSERT INTO changing (id, a) VALUES (?, ?)');
    for ($n = 0; $n < 8; $n++) {
        step("again $n", fn () => $insert->execute([$n, $n]));
    }
    $c->exec('ALTER TABLE changing ADD COLUMN more int');
    step('altered', fn () => $insert->execute([20, 1]));
    step('read', fn () => run($c, 'SELECT * FROM changing ORDER BY id LIMIT 2'));
    $c->exec('LISTEN bell');
    connection()->exec("NOTIFY bell, 'ding'");
    step('heard', fn () => array_slice(array_values($c->pgsqlGetNotify(PDO::FETCH_ASSOC, 30000)), 0, 1));
    $c->exec('UNLISTEN *');
    $c->exec("SET TIME ZONE 'Asia/Tokyo'");
    step('zone', fn () => run($c, 'INSERT INTO stamped (id) VALUES (?) RETURNING zone', [1]));
    $c->exec('SET ROLE windrow_guest');
    step('guest', fn () => run($c, 'INSERT INTO stamped (id) VALUES (?) RETURNING who', [2]));
    step('denied', fn () => run($c, 'INSERT INTO plain (id) VALUES (?)', [200]));
    $c->exec('RESET ROLE');
    $c->exec('SET search_path = other');
    step('other', fn () => run($c, 'INSERT INTO plain (id, b) VALUES (?, ?) RETURNING *', [1, 'other']));
    $c->exec('RESET ALL');
    $c->exec('CREATE TEMP TABLE passing (id int)');
    step('temp', fn () => run($c, 'INSERT INTO passing VALUES (?)', [1]));
    step('copy', fn () => $c->pgsqlCopyFromArray('plain', ["300\t1\tx\n", "301\t2\ty\n"]));
    step('copy out', fn () => $c->pgsqlCopyToArray('other.plain'));
    step('empty', fn () => $c->exec('-- nothing'));
    step('large', fn () => run($c, 'INSERT INTO plain (id, b) VALUES (?, ?)', [400, str_repeat('é', 500000)]));
    step('large back', fn () => run($c, 'SELECT length(b), md5(b) FROM plain WHERE id = 400'));
    $c->exec('SET statement_timeout = 150');
    step('slow', fn () => run($c, 'SELECT pg_sleep(60)'));
    $c->exec('RESET statement_timeout');
    step('many', function () use ($c) {
        $told = run($c, 'SELECT n FROM generate_series(1, 10000) n');
        return count(end($told));
    });
    $started = connection(" options='-c search_path=other'");
    step('startup', fn () => run($started, 'INSERT INTO plain (id, b) VALUES (?, ?) RETURNING *', [2, 'startup']));
};

$scenarios['loop'] = function (): void {
    $c = connection();
    $seen = [];
    $insert = $c->prepare('INSERT INTO plain (id, a, b) VALUES (?, ?, ?)');
    for ($n = 2000; $n < 2300; $n++) {
        $insert->execute([$n, $n, "it's $n"]);
        $seen['insert ' . $insert->rowCount()] = ($seen['insert ' . $insert->rowCount()] ?? 0) + 1;
        $seen['update ' . $c->exec("UPDATE plain SET a = a + 1 WHERE id = $n")] = ($seen['update 1'] ?? 0) + 1;
    }
    tell('counts', ['value' => $seen]);
};

// The functions of the pgsql extension.
function functions(array $url): void
{
    global $scenario;
    $scenario = 'functions';
    $c = pg_connect(dsn($url));
    $result = function (string $name, $result) use ($c): void {
        if ($result === false) {
            tell($name, ['error' => pg_last_error($c)]);
            return;
        }
        $told = [pg_result_status($result, PGSQL_STATUS_STRING), pg_affected_rows($result)];
        if (pg_num_fields($result) > 0) {
            $told[] = pg_fetch_all($result, PGSQL_NUM);
        }
        if (($state = pg_result_error_field($result, PGSQL_DIAG_SQLSTATE)) !== null && $state !== false) {
            $told[] = [$state, pg_result_error($result), pg_result_error_field($result, PGSQL_DIAG_MESSAGE_DETAIL)];
        }
        tell($name, ['value' => $told, 'notice' => pg_last_notice($c, PGSQL_NOTICE_ALL)]);
        pg_last_notice($c, PGSQL_NOTICE_CLEAR);
    };
    foreach (explode("\n\n", file_get_contents(__DIR__ . '/../schema.sql')) as $number => $block) {
        $result("block $number", pg_query($c, $block));
    }
    for ($n = 0; $n < 30; $n++) {
        $result("params $n", pg_query_params($c, 'INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)', [$n, $n * 2, "it's"]));
    }
    $result('query', pg_query($c, "INSERT INTO plain (id, b) VALUES (30, 'it''s')"));
    $result('returning', pg_query($c, "INSERT INTO kinds (small) VALUES (7) RETURNING id"));
    $result('oid', pg_query($c, 'SELECT lastval()'));
    $result('prepare', pg_prepare($c, 'mine', 'UPDATE plain SET a = a + 1 WHERE id = $1'));
    for ($n = 0; $n < 10; $n++) {
        $result("execute $n", pg_execute($c, 'mine', [$n * 5]));
    }
    $result('notice', pg_query_params($c, 'INSERT INTO noisy VALUES ($1, $2)', [1, 'warn']));
    pg_send_query_params($c, 'INSERT INTO plain (id) VALUES ($1)', [1]);
    $result('sent', pg_get_result($c));
    pg_send_query($c, 'INSERT INTO plain (id) VALUES (40); SELECT 1; INSERT INTO plain (id) VALUES (41)');
    while ($next = pg_get_result($c)) {
        $result('one of many', $next);
    }
    tell('insert', ['value' => pg_insert($c, 'plain', ['id' => 50, 'a' => 1, 'b' => 'by array'], PGSQL_DML_EXEC)]);
    tell('update', ['value' => pg_update($c, 'plain', ['a' => 2], ['id' => 50])]);
    tell('select', ['value' => pg_select($c, 'plain', ['id' => 50])]);
    tell('delete', ['value' => pg_delete($c, 'plain', ['id' => 50])]);
    tell('copy', ['value' => pg_copy_from($c, 'plain', ["60\t1\tx\n"])]);
    tell('status', ['value' => [pg_transaction_status($c), pg_parameter_status($c, 'server_encoding')]]);
}

if ($mode === 'functions') {
    error_reporting(E_ALL & ~E_WARNING);
    functions($url);
    exit(0);
}
$c = connection();
foreach ($scenarios as $scenario => $play) {
    $play($c);
}
