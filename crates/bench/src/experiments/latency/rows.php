// Writes rows one by one, or so in a transaction, and prints how many seconds that took.
[, $host, $port, $database, $user, $form, $rows, $options] = $argv;
$source = "pgsql:host=$host;port=$port;dbname=$database;options='$options'";
$db = new PDO($source, $user, '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);

function eachRow(PDO $db, string $table, int $count, string $form): void
{
    $inTransaction = $form === 'transaction' || $form === 'returning';
    if ($inTransaction) {
        $db->beginTransaction();
    }
    $insert = $db->prepare(match ($form) {
        'returning' => "INSERT INTO $table (value, note) VALUES (?, ?) RETURNING id",
        default => "INSERT INTO $table (id, value, note) VALUES (?, ?, ?)",
    });
    for ($id = 0; $id < $count; $id++) {
        $values = [$id, 'as it was seen at the time'];
        $insert->execute($form === 'returning' ? $values : [$id, ...$values]);
        $key = $form === 'returning' ? $insert->fetchColumn() : $id;
    }
    if ($inTransaction) {
        $db->commit();
    }
}

// What a connection and the gateway find out once is found out before.
$db->exec('TRUNCATE ready');
eachRow($db, 'ready', 3, $form);

$start = hrtime(true);
eachRow($db, 'lines', (int) $rows, $form);
printf("%.6f\n", (hrtime(true) - $start) / 1e9);
