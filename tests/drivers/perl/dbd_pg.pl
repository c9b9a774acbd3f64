# Scenarios for Perl's DBI with DBD::Pg. Usage: perl dbd_pg.pl URL [server_prepare | client_prepare]
use strict;
use warnings;
use utf8;
use DBI;
use DBD::Pg qw(:pg_types);
use FindBin;
use JSON::PP;

my ($url, $mode) = @ARGV;
$mode //= 'server_prepare';
my ($user, $host, $port, $database) = $url =~ m{^postgres(?:ql)?://([^@]*)@([^:/]+):(\d+)/(\w+)} or die "no such URL: $url\n";
my $json = JSON::PP->new->canonical->ascii->allow_nonref;
my $scenario = '';
my @notices;
$SIG{__WARN__} = sub { push @notices, $_[0] };
$| = 1;

sub connection {
    my (%more) = @_;
    my $c = DBI->connect("dbi:Pg:dbname=$database;host=$host;port=$port" . ($more{options} // ''), $user, '',
        { AutoCommit => 1, RaiseError => 1, PrintError => 0, PrintWarn => 1, pg_enable_utf8 => 1, %{ $more{attributes} // {} } });
    $c->{pg_server_prepare} = $mode eq 'server_prepare' ? 1 : 0;
    $c->{pg_errorlevel} = 2;
    return $c;
}

sub say_step {
    my ($step, %what) = @_;
    $what{warnings} = [splice @notices] if @notices;
    # Where in this file a warning arose is no business of the transcript.
    s/ at \S+ line \d+.*//s for @{ $what{warnings} // [] };
    print $json->encode({ scenario => $scenario, step => $step, %what }), "\n";
}

sub error_fields {
    my ($c) = @_;
    my %told = (state => $c->state, text => $c->errstr, number => $c->err);
    for my $name (qw(severity message_primary message_detail message_hint statement_position schema_name table_name
        column_name constraint_name datatype_name source_function)) {
        my $value = eval { $c->pg_error_field($name) };
        $told{$name} = $value if defined $value;
    }
    return \%told;
}

sub step {
    my ($c, $name, $action) = @_;
    my $value = eval { [$action->()] };
    return say_step($name, error => error_fields($c), died => !defined $c->state) if !defined $value;
    say_step($name, value => $value);
}

# Prepares and executes; gives the count and the rows.
sub run {
    my ($c, $sql, @values) = @_;
    my $statement = $c->prepare($sql);
    my $count = $statement->execute(@values);
    my @told = ("$count", $statement->rows, $statement->{pg_cmd_status});
    push @told, $statement->{NAME}, $statement->{pg_type}, $statement->fetchall_arrayref if $statement->{NUM_OF_FIELDS};
    return @told;
}

my %scenarios;

$scenarios{'1 schema'} = sub {
    my ($c) = @_;
    open my $file, '<:encoding(UTF-8)', "$FindBin::Bin/../schema.sql" or die;
    my $number = 0;
    for my $block (split /\n\n/, do { local $/; <$file> }) {
        step($c, 'block ' . $number++, sub { $c->do($block) });
    }
};

my @kinds = qw(small whole big single wide exact words short padded yes day clock local_at at span tag doc docb numbers names feeling address above);
my @values = (-3, 70000, '9223372036854775807', 1.5, 0.1, '3.141593', "it's \\ \"q\" \x{fc}\x{4e2d} ?\n", 'sh', 'p', 't', '2024-02-29', '01:02:03.000004',
    '2000-01-02 03:04:05.000006', '2024-07-01 00:00:00+05:30', '-1 day 00:00:05', '00000000-0000-0000-0000-000000000005', '{"a": [1, null]}',
    '["x"]', [1, undef, 3], ["a'b", undef, '\\'], 'ok', '10.0.0.1', 5);

$scenarios{'2 kinds'} = sub {
    my ($c) = @_;
    my $sql = 'INSERT INTO kinds (' . join(', ', @kinds) . ') VALUES (' . join(', ', ('?') x @kinds) . ')';
    step($c, 'row', sub { run($c, $sql, @values) });
    step($c, 'returned', sub { run($c, "$sql RETURNING *", @values) });
    step($c, 'nothing', sub { run($c, $sql, (undef) x @kinds) });
    for my $n (0 .. $#kinds) {
        step($c, "only $kinds[$n]", sub { run($c, "INSERT INTO kinds ($kinds[$n]) VALUES (?) RETURNING id, $kinds[$n]", $values[$n]) });
    }
    my $statement = $c->prepare('INSERT INTO kinds (bytes) VALUES (?) RETURNING bytes');
    $statement->bind_param(1, join('', map { chr } 0 .. 255), { pg_type => PG_BYTEA });
    step($c, 'bytes', sub { $statement->execute; unpack('H*', $statement->fetch->[0]) });
    $statement = $c->prepare('INSERT INTO kinds (whole, words) VALUES (?, ?) RETURNING whole');
    $statement->bind_param(1, 5, { pg_type => PG_INT4 });
    $statement->bind_param(2, 'typed');
    step($c, 'typed', sub { $statement->execute; $statement->fetchall_arrayref });
    step($c, 'read', sub { run($c, 'SELECT * FROM kinds WHERE bytes IS NULL ORDER BY id') });
};

$scenarios{'3 writes'} = sub {
    my ($c) = @_;
    step($c, 'parent', sub { run($c, 'INSERT INTO parent (id, name) VALUES (?, ?)', 1, 'one') });
    step($c, 'child', sub { run($c, 'INSERT INTO child (parent_id, quantity) VALUES (?, ?)', 1, 5) });
    step($c, 'last id', sub { $c->last_insert_id(undef, undef, 'child', undef) });
    step($c, 'last id of', sub { $c->last_insert_id(undef, undef, undef, undef, { sequence => 'child_id_seq' }) });
    step($c, 'lastval', sub { run($c, 'SELECT lastval()') });
    for my $n (1 .. 5) {
        step($c, "insert $n", sub { run($c, 'INSERT INTO plain (id, a, b) VALUES (?, ?, ?)', $n, $n, "it's") });
    }
    for my $n (1, 99) {
        step($c, "update $n", sub { run($c, 'UPDATE plain SET a = a + ? WHERE id = ?', 10, $n) });
        step($c, "returning $n", sub { run($c, 'UPDATE plain SET a = a + ? WHERE id = ? RETURNING a', 10, $n) });
        step($c, "delete $n", sub { run($c, 'DELETE FROM plain WHERE id = ?', $n) });
        step($c, "do $n", sub { $c->do('UPDATE plain SET a = a + 1 WHERE id = ?', undef, $n) });
        step($c, "plain do $n", sub { $c->do("UPDATE plain SET a = a + 1 WHERE id = $n") });
    }
    for my $n (1 .. 2) {
        step($c, "upsert $n", sub { run($c, 'INSERT INTO counter AS k VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n', 'u', 3) });
        step($c, "ignore $n", sub { run($c, 'INSERT INTO counter VALUES (?, ?) ON CONFLICT DO NOTHING', 'w', 3) });
    }
    step($c, 'named', sub { my $s = $c->prepare('INSERT INTO plain (id, b) VALUES (:id, :b)'); $s->bind_param(':id', 6); $s->bind_param(':b', 'named'); $s->execute });
    step($c, 'dollar', sub { my $s = $c->prepare('INSERT INTO plain (id, b) VALUES ($1, $2)'); $s->execute(7, 'dollar') });
};

$scenarios{'4 refused'} = sub {
    my ($c) = @_;
    for my $case (
        ['unique', 'INSERT INTO parent (id, name) VALUES (?, ?)', 2, 'one'],
        ['primary', 'INSERT INTO parent (id, name) VALUES (?, ?)', 1, 'two'],
        ['check', "INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, ?, ?, '2000-01-01')", 1, -1],
        ['foreign', 'INSERT INTO child (parent_id) VALUES (?)', 77],
        ['not null', 'INSERT INTO parent (id, name) VALUES (?, ?)', 3, undef],
        ['too long', 'INSERT INTO child (parent_id, label) VALUES (?, ?)', 1, 'x' x 11],
        ['range', 'INSERT INTO kinds (small) VALUES (?)', 40000],
        ['type', 'INSERT INTO plain (id, a) VALUES (?, ?)', 50, 'abc'],
        ['float', 'INSERT INTO plain (id, a) VALUES (?, ?)', 50, 1.5],
        ['table', 'INSERT INTO nowhere VALUES (?)', 1],
        ['column', 'INSERT INTO plain (nothing) VALUES (?)', 1],
        ['syntax', 'INSERT INTO plain (id VALUES (?)', 1],
        ['late', 'INSERT INTO late VALUES (?, ?)', 1, 999],
        ['count', 'INSERT INTO plain (id, a) VALUES (?, ?)', 1],
        ['word', 'INSERT INTO noisy VALUES (?, ?)', 1, 'word'],
        ['warn', 'INSERT INTO noisy VALUES (?, ?)', 2, 'warn'],
        ['refuse', 'INSERT INTO noisy VALUES (?, ?)', 3, 'refuse'],
        ['goes on', 'INSERT INTO plain (id) VALUES (?)', 51],
    ) {
        my ($name, $sql, @bound) = @$case;
        step($c, $name, sub { run($c, $sql, @bound) });
    }
};

$scenarios{'5 arrays of values'} = sub {
    my ($c) = @_;
    my $statement = $c->prepare('INSERT INTO plain (id, a) VALUES (?, ?)');
    my @status;
    step($c, 'execute_array', sub { $statement->execute_array({ ArrayTupleStatus => \@status }, [100 .. 119], [1 .. 20]) });
    say_step('status', value => \@status);
    my @again;
    my $failed = !defined eval { $statement->execute_array({ ArrayTupleStatus => \@again }, [120, 100, 121], [1, 2, 3]) };
    say_step('one bad', value => [$failed ? 1 : 0, \@again]);
    my @rows = map { [$_, $_] } 130 .. 139;
    my @fetched;
    step($c, 'execute_for_fetch', sub { $statement->execute_for_fetch(sub { shift @rows }, \@fetched) });
    say_step('fetched', value => \@fetched);
    step($c, 'left', sub { run($c, 'SELECT count(*), sum(a) FROM plain WHERE id >= 100') });
};

$scenarios{'6 transactions'} = sub {
    my ($c) = @_;
    $c->begin_work;
    step($c, 'insert', sub { run($c, 'INSERT INTO plain (id) VALUES (?)', 200) });
    step($c, 'savepoint', sub { $c->pg_savepoint('s') });
    step($c, 'duplicate', sub { run($c, 'INSERT INTO plain (id) VALUES (?)', 200) });
    step($c, 'failed', sub { run($c, 'SELECT 1') });
    step($c, 'ping', sub { $c->ping });
    step($c, 'back', sub { $c->pg_rollback_to('s') });
    step($c, 'commit', sub { $c->commit });
    $c->begin_work;
    run($c, 'INSERT INTO plain (id) VALUES (?)', 201);
    step($c, 'rollback', sub { $c->rollback });
    step($c, 'ping outside', sub { $c->ping });
    step($c, 'script', sub { $c->do('INSERT INTO plain (id) VALUES (202); INSERT INTO plain (id) VALUES (203)') });
    step($c, 'bad script', sub { $c->do('INSERT INTO plain (id) VALUES (204); INSERT INTO plain (id) VALUES (203)') });
    step($c, 'left', sub { run($c, 'SELECT id FROM plain WHERE id >= 200 ORDER BY id') });
    step($c, 'bound late', sub { $c->begin_work; run($c, 'INSERT INTO late VALUES (?, ?)', 3, 998); $c->commit });
    $c->rollback if !$c->{AutoCommit};
};

$scenarios{'7 prepared'} = sub {
    my ($c) = @_;
    my $statement = $c->prepare('INSERT INTO changing (id, a) VALUES (?, ?)');
    step($c, "again $_", sub { $statement->execute($_, $_) }) for 1 .. 12;
    my $read = $c->prepare('SELECT * FROM changing WHERE id = ?');
    step($c, "read $_", sub { $read->execute($_); $read->fetchall_arrayref }) for 1 .. 3;
    step($c, 'alter', sub { $c->do('ALTER TABLE changing ADD COLUMN more int') });
    step($c, 'insert after', sub { $statement->execute(20, 20) });
    # Without server-side prepare DBD::Pg 3.16 itself ends with a segmentation fault when the columns have changed.
    step($c, 'stale', sub { $read->execute(1); $read->fetchall_arrayref }) if $mode eq 'server_prepare';
    step($c, 'fresh', sub { run($c, 'SELECT * FROM changing WHERE id = ?', 2) });
};

$scenarios{'8 session'} = sub {
    my ($c) = @_;
    step($c, 'listen', sub { $c->do('LISTEN bell') });
    my $other = connection();
    $other->do("NOTIFY bell, 'ding'");
    $c->do('INSERT INTO plain (id) VALUES (300)');
    my $heard;
    while (!$heard) { $heard = $c->pg_notifies }
    say_step('heard', value => [$heard->[0], $heard->[2]]);
    $c->do('UNLISTEN *');
    step($c, 'zone', sub { $c->do("SET TIME ZONE 'Asia/Tokyo'") });
    step($c, 'stamped', sub { run($c, 'INSERT INTO stamped (id) VALUES (?) RETURNING zone', 1) });
    step($c, 'role', sub { $c->do('SET ROLE windrow_guest') });
    step($c, 'as guest', sub { run($c, 'INSERT INTO stamped (id) VALUES (?) RETURNING who', 2) });
    step($c, 'denied', sub { run($c, 'INSERT INTO plain (id) VALUES (?)', 301) });
    step($c, 'reset', sub { $c->do('RESET ALL'); $c->do('RESET ROLE') });
    step($c, 'path', sub { $c->do('SET search_path = other') });
    step($c, 'in other', sub { run($c, 'INSERT INTO plain (id, b) VALUES (?, ?) RETURNING *', 1, 'other') });
    step($c, 'path back', sub { $c->do('RESET search_path') });
    step($c, 'temp', sub { $c->do('CREATE TEMP TABLE passing (id int)') });
    step($c, 'into temp', sub { run($c, 'INSERT INTO passing VALUES (?)', 1) });
    step($c, 'copy', sub { $c->do('COPY plain (id, b) FROM STDIN'); $c->pg_putcopydata("400\tcopied\n"); $c->pg_putcopydata("401\tcopied\n"); $c->pg_putcopyend });
    step($c, 'copy out', sub { $c->do('COPY (SELECT id, b FROM plain WHERE id >= 400 ORDER BY id) TO STDOUT'); my ($row, @all); push @all, $row while $c->pg_getcopydata($row) >= 0; @all });
    step($c, 'empty', sub { $c->do('') });
    step($c, 'large', sub { run($c, 'INSERT INTO plain (id, b) VALUES (?, ?)', 500, "\x{e9}" x 500_000) });
    step($c, 'large back', sub { run($c, 'SELECT length(b), md5(b) FROM plain WHERE id = 500') });
    step($c, 'timeout', sub { $c->do('SET statement_timeout = 150') });
    step($c, 'too slow', sub { run($c, 'SELECT pg_sleep(60)') });
    step($c, 'reset timeout', sub { $c->do('RESET statement_timeout') });
    my @rows = run($c, 'SELECT n FROM generate_series(1, 10000) n');
    say_step('many', value => scalar @{ $rows[5] });
    my $slow = $c->prepare('SELECT pg_sleep(60)', { pg_async => PG_ASYNC });
    step($c, 'asynchronous', sub {
        $slow->execute;
        # A cancel request that comes before the statement has begun cancels nothing, by its nature.
        my $active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(60)%'";
        1 while !$other->selectrow_array($active);
        return $c->pg_cancel ? 1 : 0;
    });
    step($c, 'goes on', sub { run($c, 'INSERT INTO plain (id) VALUES (?)', 501) });
    $other->disconnect;
};

$scenarios{'9 loop'} = sub {
    my $c = connection();
    my %seen;
    my $insert = $c->prepare('INSERT INTO plain (id, a, b) VALUES (?, ?, ?)');
    $seen{ $insert->execute($_, $_, "loop $_") }++ for 2000 .. 2299;
    $seen{ 'do ' . $c->do('UPDATE plain SET a = a + 1 WHERE id = ?', undef, $_) }++ for 2000 .. 2299;
    say_step('counts', value => \%seen);
    $c->disconnect;
};

my $c = connection();
for my $name (sort keys %scenarios) {
    $scenario = substr $name, 2;
    $scenarios{$name}->($c);
}
$c->disconnect;
