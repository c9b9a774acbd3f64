# Writes rows by one of four ways, and prints how many seconds that took.
use strict;
use warnings;
use DBI;
use Time::HiRes qw(time);

my ($host, $port, $database, $user, $form, $rows, $options) = @ARGV;
my $source = "dbi:Pg:host=$host;port=$port;dbname=$database";
$source .= ";options=$options" if $options;
my $db = DBI->connect($source, $user, '', { RaiseError => 1, PrintError => 0, AutoCommit => 1 });
my $in_transaction = $form eq 'transaction' || $form eq 'returning';

sub insert {
    my ($table) = @_;
    return $db->prepare("INSERT INTO $table (value, note) VALUES (?, ?) RETURNING id")
        if $form eq 'returning';
    return $db->prepare("INSERT INTO $table (id, value, note) VALUES (?, ?, ?)");
}

sub each_row {
    my ($insert, $count) = @_;
    $db->begin_work if $in_transaction;
    for my $id (0 .. $count - 1) {
        if ($form eq 'returning') {
            $insert->execute($id, 'as it was seen at the time');
            my ($key) = $insert->fetchrow_array;
            $insert->finish;
        }
        else {
            $insert->execute($id, $id, 'as it was seen at the time');
        }
    }
    $db->commit if $in_transaction;
}

# What a connection and the gateway find out once is found out before.
$db->do('TRUNCATE ready');
each_row(insert('ready'), 3);

my $insert = insert('lines');
my $start  = time;
if ($form eq 'for_fetch') {
    my $id = 0;
    $insert->execute_for_fetch(sub {
        return if $id >= $rows;
        my $row = [$id, $id, 'as it was seen at the time'];
        $id++;
        return $row;
    });
}
else {
    each_row($insert, $rows);
}
printf "%.6f\n", time - $start;
$db->disconnect;
