// Scenarios for node-postgres. Usage: node pg.js URL [text | unnamed | named | crowd]
'use strict';

const { once } = require('events');
const { pipeline } = require('stream/promises');
const { Readable } = require('stream');
const { Client, Pool, escapeLiteral, types } = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');
const copy = require('pg-copy-streams');
const { blocks, fields, play, say, step } = require('./transcript');

const [url, mode = 'unnamed'] = process.argv.slice(2);

async function connect(more = {}) {
    const client = new Client({ connectionString: url, ...more });
    client.on('notice', (notice) => say('notice', { notice: fields(notice) }));
    await client.connect();
    return client;
}

// A statement's name must fit into 63 bytes and tell texts apart.
const names = new Map();
function named(text) {
    if (!names.has(text)) names.set(text, `statement ${names.size}`);
    return names.get(text);
}

// In text mode values are put into the text on the client's side, which makes it a simple query.
function interpolate(text, values) {
    return text.replace(/\$(\d+)/g, (_, n) => {
        const value = values[n - 1];
        if (value === null || value === undefined) return 'NULL';
        if (typeof value === 'number') return value < 0 ? `(${value})` : String(value);
        return escapeLiteral(String(value));
    });
}

async function run(client, text, values = []) {
    let query = { text, values };
    if (mode === 'named') query.name = named(text);
    if (mode === 'text') query = { text: interpolate(text, values) };
    const result = await client.query(query);
    return Array.isArray(result) ? result.map(told) : told(result);
}

function told(result) {
    return [result.command, result.rowCount, result.fields.map((f) => [f.name, f.dataTypeID, f.dataTypeModifier]), result.rows];
}

const KINDS = {
    small: -3, whole: 70000, big: '9223372036854775807', single: 1.5, wide: 0.1, exact: '3.141593', words: 'it\'s "q" \u00fc\u4e2d \n',
    short: 'sh', padded: 'p', yes: true, day: '2024-02-29', clock: '01:02:03.000004', local_at: '2000-01-02 03:04:05.000006',
    at: '2024-07-01 00:00:00+05:30', span: '3 days', tag: '00000000-0000-0000-0000-000000000005', doc: '{"a": 1}', docb: '[1, null]',
    numbers: '{1,NULL,3}', names: '{a,b}', feeling: 'ok', address: '10.0.0.1', above: 5,
};

async function schema(c) {
    for (const [number, block] of blocks().entries()) await step(`block ${number}`, () => c.query(block).then(told));
}

async function kinds(c) {
    const columns = Object.keys(KINDS);
    const sql = `INSERT INTO kinds (${columns}) VALUES (${columns.map((_, n) => `$${n + 1}`)})`;
    await step('row', () => run(c, sql, Object.values(KINDS)));
    await step('returned', () => run(c, `${sql} RETURNING *`, Object.values(KINDS)));
    await step('nothing', () => run(c, sql, columns.map(() => null)));
    for (const [name, value] of Object.entries(KINDS)) {
        await step(`only ${name}`, () => run(c, `INSERT INTO kinds (${name}) VALUES ($1) RETURNING id, ${name}`, [value]));
    }
    if (mode !== 'text') {
        await step('objects', () => run(c, 'INSERT INTO kinds (bytes, at, doc, docb, numbers) VALUES ($1, $2, $3, $4, $5) RETURNING *',
            [Buffer.from([0, 1, 255]), new Date(0), { a: [1] }, JSON.stringify([1]), [1, 2]]));
        await step('binary', () => c.query({ text: 'INSERT INTO kinds (whole, wide) VALUES ($1, $2) RETURNING whole, wide', values: [7, 1.25], binary: true }).then(told));
    }
    await step('read', () => run(c, 'SELECT * FROM kinds ORDER BY id'));
    await step('arrays', () => c.query({ text: 'INSERT INTO plain VALUES (999) RETURNING 1 AS a, 2 AS a', rowMode: 'array' }).then(told));
}

async function writes(c) {
    await step('parent', () => run(c, 'INSERT INTO parent (id, name) VALUES ($1, $2)', [1, 'one']));
    await step('returning', () => run(c, 'INSERT INTO child (parent_id, quantity) VALUES ($1, $2) RETURNING id', [1, 5]));
    await step('plain', () => run(c, 'INSERT INTO child (parent_id, quantity) VALUES ($1, $2)', [1, 6]));
    await step('lastval', () => run(c, 'SELECT lastval()'));
    for (let n = 1; n <= 5; n++) await step(`insert ${n}`, () => run(c, 'INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)', [n, n, "it's"]));
    for (const n of [1, 99]) {
        await step(`update ${n}`, () => run(c, 'UPDATE plain SET a = a + $1 WHERE id = $2', [10, n]));
        await step(`returning ${n}`, () => run(c, 'UPDATE plain SET a = a + $1 WHERE id = $2 RETURNING a, b', [10, n]));
        await step(`delete ${n}`, () => run(c, 'DELETE FROM plain WHERE id = $1', [n]));
    }
    for (let n = 0; n < 2; n++) {
        await step(`upsert ${n}`, () => run(c, 'INSERT INTO counter AS k VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n', ['u', 3]));
        await step(`ignore ${n}`, () => run(c, 'INSERT INTO counter VALUES ($1, $2) ON CONFLICT DO NOTHING', ['w', 3]));
    }
}

async function refused(c) {
    const cases = {
        unique: ['INSERT INTO parent (id, name) VALUES ($1, $2)', [2, 'one']],
        primary: ['INSERT INTO parent (id, name) VALUES ($1, $2)', [1, 'two']],
        check: ["INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, $1, $2, '2000-01-01')", [1, -1]],
        foreign: ['INSERT INTO child (parent_id) VALUES ($1)', [77]],
        'not null': ['INSERT INTO parent (id, name) VALUES ($1, $2)', [3, null]],
        'too long': ['INSERT INTO child (parent_id, label) VALUES ($1, $2)', [1, 'x'.repeat(11)]],
        range: ['INSERT INTO kinds (small) VALUES ($1)', [40000]],
        type: ['INSERT INTO plain (id, a) VALUES ($1, $2)', [50, 'abc']],
        float: ['INSERT INTO plain (id, a) VALUES ($1, $2) RETURNING a', [50, 1.5]],
        table: ['INSERT INTO nowhere VALUES ($1)', [1]],
        column: ['INSERT INTO plain (nothing) VALUES ($1)', [1]],
        syntax: ['INSERT INTO plain (id VALUES ($1)', [1]],
        late: ['INSERT INTO late VALUES ($1, $2)', [1, 999]],
        word: ['INSERT INTO noisy VALUES ($1, $2)', [1, 'word']],
        warn: ['INSERT INTO noisy VALUES ($1, $2)', [2, 'warn']],
        refuse: ['INSERT INTO noisy VALUES ($1, $2)', [3, 'refuse']],
        'goes on': ['INSERT INTO plain (id) VALUES ($1)', [51]],
    };
    for (const [name, [sql, values]] of Object.entries(cases)) await step(name, () => run(c, sql, values));
    if (mode !== 'text') {
        await step('too few', () => run(c, 'INSERT INTO plain (id, a) VALUES ($1, $2)', [1]));
        await step('too many', () => run(c, 'INSERT INTO plain (id) VALUES ($1)', [1, 2]));
    }
}

async function transactions(c) {
    for (const sql of ['BEGIN', 'INSERT INTO plain (id) VALUES (100)', 'SAVEPOINT s', 'INSERT INTO plain (id) VALUES (100)', 'SELECT 1', 'ROLLBACK TO s', 'COMMIT',
        'BEGIN', 'INSERT INTO plain (id) VALUES (101)', 'ROLLBACK', 'BEGIN', 'INSERT INTO late VALUES (2, 999)', 'COMMIT', 'SELECT count(*) FROM plain WHERE id >= 100']) {
        await step(sql, () => run(c, sql));
    }
    await step('script', () => c.query('INSERT INTO plain (id) VALUES (102); UPDATE plain SET a = 1 WHERE id = 102; SELECT 7 AS seven').then((all) => all.map(told)));
    await step('bad script', () => c.query('INSERT INTO plain (id) VALUES (103); INSERT INTO plain (id) VALUES (102)'));
    await step('left', () => run(c, 'SELECT id FROM plain WHERE id >= 100 ORDER BY id'));
    // Queued on one connection: the answers come in the order of the questions.
    await step('queued', async () => {
        const asked = [];
        for (let n = 200; n < 260; n++) asked.push(run(c, 'INSERT INTO plain (id) VALUES ($1) RETURNING id', [n % 7 === 3 ? 200 : n]).then((r) => r[3][0].id, (e) => e.code));
        return Promise.all(asked);
    });
}

async function prepared(c) {
    for (let n = 0; n < 8; n++) await step(`again ${n}`, () => run(c, 'INSERT INTO changing (id, a) VALUES ($1, $2)', [n, n]));
    await step('read', () => run(c, 'SELECT * FROM changing WHERE id = $1', [1]));
    await step('alter', () => c.query('ALTER TABLE changing ADD COLUMN more int').then(told));
    await step('insert after', () => run(c, 'INSERT INTO changing (id, a) VALUES ($1, $2)', [20, 1]));
    await step('stale', () => run(c, 'SELECT * FROM changing WHERE id = $1', [1]));
    await step('other text', () => run(c, 'SELECT * FROM changing WHERE id = $1 AND true', [1]));
    await step('same name', () => c.query({ name: 'statement 0', text: 'SELECT 1' }).then(told));
}

async function settings() {
    const c = await connect({ options: '-c search_path=other,public', application_name: 'scenario' });
    await step('startup', () => run(c, 'INSERT INTO plain (id, b) VALUES ($1, $2) RETURNING *', [1, 'other']));
    await step('zone', () => c.query("SET TIME ZONE 'Asia/Tokyo'").then(told));
    await step('stamped', () => run(c, 'INSERT INTO stamped (id) VALUES ($1) RETURNING zone', [1]));
    await step('role', () => c.query('SET ROLE windrow_guest').then(told));
    await step('guest', () => run(c, 'INSERT INTO stamped (id) VALUES ($1) RETURNING who', [2]));
    await step('reset', () => c.query('RESET ROLE').then(told));
    await step('path', () => c.query('SET search_path = public').then(told));
    await step('public', () => run(c, 'INSERT INTO plain (id, b) VALUES ($1, $2) RETURNING *', [300, 'public']));
    await step('name', () => run(c, 'SHOW application_name'));
    await step('timeout', () => c.query('SET statement_timeout = 150').then(told));
    await step('slow', () => run(c, 'SELECT pg_sleep(60)'));
    await c.end();
}

async function others(c) {
    const heard = once(c, 'notification');
    await step('listen', () => c.query('LISTEN bell').then(told));
    const other = await connect();
    await other.query("NOTIFY bell, 'ding'");
    await step('heard', async () => (await heard).map((n) => [n.channel, n.payload]));
    await step('lock', () => run(c, 'SELECT pg_advisory_lock(1)'));
    await step('locked', () => run(other, 'SELECT pg_try_advisory_lock(1)'));
    await step('unlock', () => run(c, 'SELECT pg_advisory_unlock(1)'));
    await other.end();
    await step('temp', () => c.query('CREATE TEMP TABLE passing (id int)').then(told));
    await step('into temp', () => run(c, 'INSERT INTO passing VALUES ($1)', [1]));
    await step('copy', async () => {
        const stream = c.query(copy.from('COPY plain (id, b) FROM STDIN'));
        await pipeline(Readable.from(['400\tcopied\n', '401\tcopied\n']), stream);
        return stream.rowCount;
    });
    await step('copy bad', () => pipeline(Readable.from(['402\tcopied\n', '400\tcopied\n']), c.query(copy.from('COPY plain (id, b) FROM STDIN'))));
    await step('copy out', async () => {
        const parts = [];
        for await (const part of c.query(copy.to('COPY (SELECT id, b FROM plain WHERE id >= 400 ORDER BY id) TO STDOUT'))) parts.push(part);
        return Buffer.concat(parts).toString();
    });
    await step('cursor', async () => {
        const cursor = c.query(new Cursor('SELECT n FROM generate_series(1, $1::int) n', [25]));
        const seen = [(await cursor.read(10)).length, (await cursor.read(10)).length];
        await cursor.close();
        return seen;
    });
    await step('stream', async () => {
        let sum = 0;
        for await (const row of c.query(new QueryStream('SELECT n FROM generate_series(1, 10000) n', [], { batchSize: 500 }))) sum += row.n;
        return sum;
    });
    await step('empty', () => c.query('').then(told));
    await step('large', () => run(c, 'INSERT INTO plain (id, b) VALUES ($1, $2)', [500, 'x'.repeat(1_000_000)]));
    await step('large back', () => run(c, 'SELECT length(b), md5(b) FROM plain WHERE id = 500'));
    await step('many', async () => (await run(c, 'SELECT n FROM generate_series(1, 10000) n'))[3].length);
    await step('client timeout', () => connect({ query_timeout: 60_000, statement_timeout: 150 }).then((t) => run(t, 'SELECT pg_sleep(60)').finally(() => t.end())));
}

async function loop() {
    const c = await connect();
    const seen = {};
    for (let n = 2000; n < 2300; n++) {
        const inserted = await run(c, 'INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)', [n, n, `loop ${n}`]);
        const updated = await run(c, 'UPDATE plain SET a = a + 1 WHERE id = $1', [n]);
        for (const [command, count] of [inserted, updated]) seen[`${command} ${count}`] = (seen[`${command} ${count}`] || 0) + 1;
    }
    say('counts', { value: seen });
    await c.end();
}

async function together(c) {
    await c.query("INSERT INTO counter VALUES ('shared', 0)");
    const pool = new Pool({ connectionString: url, max: 32 });
    const work = async (number) => {
        let won = 0;
        for (let n = 0; n < 50; n++) {
            await pool.query('INSERT INTO plain (id, a) VALUES ($1, $2)', [10_000 + number * 100 + n, n]);
            await pool.query('UPDATE counter SET n = n + 1 WHERE name = $1', ['shared']);
            try {
                await pool.query({ name: 'claim', text: 'INSERT INTO claimed (key, owner) VALUES ($1, 0)', values: [n] });
                won += 1;
            } catch (error) {
                if (error.code !== '23505' || error.detail !== `Key (key)=(${n}) already exists.`) throw error;
            }
            await pool.query('DELETE FROM plain WHERE id = $1', [10_000 + number * 100 + n - 10]);
        }
        return won;
    };
    const won = await Promise.all(Array.from({ length: 32 }, (_, number) => work(number)));
    say('won', { value: won.reduce((a, b) => a + b) });
    await pool.end();
    await step('counter', () => run(c, "SELECT * FROM counter WHERE name = 'shared'"));
    await step('rows', () => run(c, 'SELECT count(*), sum(a) FROM plain WHERE id >= 10000'));
}

async function main() {
    types.setTypeParser(1184, (text) => text);
    const c = await connect();
    const all = [schema, kinds, writes, refused, transactions, prepared, settings, others, loop];
    await play(mode === 'crowd' ? [schema, together] : all, c);
    await c.end();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
