<?php
require 'Illuminate/Database/autoload.php';

use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\QueryException;

$shop = ['driver' => 'pgsql', 'host' => '127.0.0.1', 'port' => 6432, 'database' => 'shop', 'username' => 'app'];
$manager = new Manager();
$manager->addConnection($shop);
$manager->bootEloquent();

class Order extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

$ids = [];
for ($n = 0; $n < 100; $n++) {
    $ids[Order::create(['item' => "cart $n"])->id] = true;
}
echo count($ids), " rows, each with an id of its own\n";
try {
    Order::create(['item' => '']);
} catch (QueryException $error) {
    echo $error->getCode(), "\n";
}
