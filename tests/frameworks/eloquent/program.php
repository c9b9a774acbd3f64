<?php
// Eloquent (Laravel) in its default configuration: create, save and delete are in autocommit, DB::transaction is a transaction,
// and in it a savepoint. A worker is a process of its own, as those of PHP-FPM are.
require 'Illuminate/Database/autoload.php';

use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Eloquent\Model;

const WORKERS = 20;
const ROUNDS = 5;

class Customer extends Model
{
    const UPDATED_AT = null;
    protected $guarded = [];

    public function addresses()
    {
        return $this->hasMany(Address::class);
    }
}

class Address extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

class Order extends Model
{
    const UPDATED_AT = null;
    protected $guarded = [];

    public function lines()
    {
        return $this->hasMany(Line::class);
    }
}

class Line extends Model
{
    protected $table = 'order_lines';
    public $timestamps = false;
    protected $guarded = [];
}

function connect(string $url): void
{
    $parts = parse_url($url);
    $manager = new Manager();
    $settings = [
        'driver' => 'pgsql', 'host' => $parts['host'], 'port' => $parts['port'], 'username' => $parts['user'],
        'database' => ltrim($parts['path'], '/'), 'charset' => 'utf8', 'search_path' => 'public', 'sslmode' => 'prefer',
    ];
    $manager->addConnection($settings);
    $manager->addConnection($settings, 'other');
    $manager->setAsGlobal();
    $manager->bootEloquent();
}

function step(string $name, $value): void
{
    fwrite(STDOUT, json_encode([$name => $value]) . "\n");
    fgets(STDIN);
}

function describe(Throwable $error): array
{
    $shown = ['classes' => []];
    for ($at = $error; $at; $at = $at->getPrevious()) {
        $shown['classes'][] = get_class($at);
        if ($at instanceof PDOException) {
            $shown['state'] = $at->errorInfo[0] ?? null;
        }
        if (preg_match('/constraint "(\w+)"/', $at->getMessage(), $found)) {
            $shown['constraint'] = $found[1];
        }
    }
    return $shown;
}

function refused(callable $work)
{
    try {
        $work();
    } catch (PDOException $error) {
        return describe($error);
    }
    return 'no error';
}

function schema(): void
{
    $schema = Manager::schema();
    $schema->create('customers', function ($table) {
        $table->id();
        $table->string('name', 40);
        $table->timestamp('created_at')->useCurrent();
    });
    $schema->create('addresses', function ($table) {
        $table->id();
        $table->foreignId('customer_id')->constrained();
        $table->text('street');
        $table->string('country', 2)->default('NL');
    });
    $schema->create('orders', function ($table) {
        $table->id();
        $table->foreignId('customer_id')->constrained();
        $table->string('number', 20)->unique();
        $table->text('note')->nullable();
        $table->timestamp('created_at')->useCurrent();
    });
    $schema->create('order_lines', function ($table) {
        $table->id();
        $table->foreignId('order_id')->constrained();
        $table->text('product');
        $table->integer('qty')->default(1);
    });
    Manager::statement('ALTER TABLE order_lines ADD CONSTRAINT order_lines_qty CHECK (qty > 0)');
}

function order(int $customer, ?string $number, array $lines): Order
{
    return Manager::connection()->transaction(function () use ($customer, $number, $lines) {
        $made = Order::create(['customer_id' => $customer, 'number' => $number]);
        foreach ($lines as [$product, $qty]) {
            $made->lines()->create($qty === null ? ['product' => $product] : ['product' => $product, 'qty' => $qty]);
        }
        return $made;
    });
}

function customerWithAddresses(string $name, array $list): Customer
{
    return Manager::connection()->transaction(function () use ($name, $list) {
        $made = Customer::create(['name' => $name]);
        $made->addresses()->createMany($list);
        return $made;
    });
}

function seen(string $number): ?array
{
    $found = Order::where('number', $number)->first();
    if (!$found) {
        return null;
    }
    $lines = $found->lines()->orderBy('product')->get()->map(fn ($line) => [$line->product, $line->qty])->all();
    return ['number' => $found->number, 'note' => $found->note, 'lines' => $lines];
}

function invalid(int $customer): array
{
    return [
        'null' => refused(fn () => order($customer, null, [['apple', null]])),
        'long' => refused(fn () => order($customer, str_repeat('N', 21), [['apple', null]])),
        'check' => refused(fn () => order($customer, 'A-3', [['apple', 0]])),
        'parent' => refused(fn () => order(999999, 'A-4', [['apple', null]])),
        'left' => [seen('A-3'), seen('A-4')],
    ];
}

function duplicate(int $customer): array
{
    $error = refused(fn () => Manager::connection()->transaction(function () use ($customer) {
        Order::create(['customer_id' => $customer, 'number' => 'B-1']);
        Order::create(['customer_id' => $customer, 'number' => 'A-1']);
    }));
    order($customer, 'B-2', [['plum', null]]);
    return ['error' => $error, 'first' => seen('B-1'), 'next' => seen('B-2')];
}

function rollback(int $customer): ?array
{
    Manager::connection()->beginTransaction();
    order($customer, 'C-1', [['apple', null]]);
    Manager::connection()->rollBack();
    return seen('C-1');
}

function savepoint(int $customer): array
{
    $error = null;
    Manager::connection()->transaction(function () use ($customer, &$error) {
        order($customer, 'D-1', [['apple', null]]);
        order($customer, 'D-2', [['pear', null]]);
        $error = refused(fn () => order($customer, 'A-1', [['plum', null]]));
        order($customer, 'D-3', [['fig', null]]);
    });
    return ['error' => $error, 'seen' => array_map('seen', ['D-1', 'D-2', 'D-3'])];
}

function worker(int $number): void
{
    for ($turn = 0; $turn < ROUNDS; $turn++) {
        $owner = customerWithAddresses("worker $number $turn", [['street' => 'X'], ['street' => 'Y'], ['street' => 'Z']]);
        $made = order($owner->id, "W-$number-$turn", [['apple', null], ['pear', null], ['plum', 5]]);
        echo "$made->id $made->number\n";
    }
}

function workers(string $url): array
{
    $running = [];
    for ($number = 0; $number < WORKERS; $number++) {
        $pipes = [];
        $process = proc_open([PHP_BINARY, __FILE__, $url, (string) $number], [1 => ['pipe', 'w']], $pipes);
        $running[] = [$process, $pipes[1]];
    }
    $made = [];
    foreach ($running as [$process, $pipe]) {
        $lines = explode("\n", trim(stream_get_contents($pipe)));
        $made = array_merge($made, array_map(fn ($line) => explode(' ', $line), $lines));
        proc_close($process);
    }
    $found = Order::pluck('number', 'id');
    $differing = array_filter($made, fn ($one) => ($found[$one[0]] ?? null) !== $one[1]);
    return ['orders' => count($made), 'as read' => $differing === []];
}

connect($argv[1]);
if (isset($argv[2])) {
    worker((int) $argv[2]);
    exit;
}
schema();
// Another worker of the same application writes with the same settings.
Customer::on('other')->create(['name' => 'of another worker']);
step('schema', null);
$ada = Customer::create(['name' => 'Ada']);
step('customer', ['name' => $ada->name, 'created' => $ada->created_at !== null]);
$bob = customerWithAddresses('Bob', [['street' => 'A'], ['street' => 'B'], ['street' => 'C', 'country' => 'BE']]);
step('addresses', $bob->addresses()->orderBy('street')->get()->map(fn ($one) => [$one->street, $one->country])->all());
$first = order($ada->id, 'A-1', [['apple', null], ['pear', null], ['plum', 5]]);
step('order', seen('A-1'));
$found = Order::find($first->id);
$found->note = 'changed';
$found->save();
step('update', seen('A-1'));
order($ada->id, 'A-2', [['apple', null], ['pear', null]]);
$found = Order::where('number', 'A-2')->first();
$found->lines->each->delete();
$found->delete();
step('delete', seen('A-2'));
step('invalid', invalid($ada->id));
step('duplicate', duplicate($ada->id));
step('rollback', rollback($ada->id));
// With late transactions no program goes on after a failed INSERT.
if (getenv('SHOP_LATE') === false) {
    step('savepoint', savepoint($ada->id));
}
step('workers', workers($argv[1]));
