// Scenarios for postgres.js, which prepares everything and pipelines what is asked at once. Usage: node postgresjs.js URL [default | simple]
'use strict';

const postgres = require('postgres');
const { blocks, fields, play, say, step } = require('./transcript');

const [url, mode = 'default'] = process.argv.slice(2);
const options = { onnotice: (notice) => say('notice', { notice: fields(notice) }), prepare: mode === 'default', max: 1 };

const told = (result) => [result.command ?? null, result.count, (result.columns ?? []).map((c) => [c.name, c.type]), [...result]];

async function schema(sql) {
    for (const [number, block] of blocks().entries()) await step(`block ${number}`, () => sql.unsafe(block).then(told));
}

async function writes(sql) {
    await step('parent', () => sql`INSERT INTO parent ${sql({ id: 1, name: 'one' })}`.then(told));
    for (let n = 1; n <= 30; n++) await step(`insert ${n}`, () => sql`INSERT INTO plain (id, a, b) VALUES (${n}, ${n}, ${"it's"})`.then(told));
    for (const n of [1, 99]) {
        await step(`update ${n}`, () => sql`UPDATE plain SET a = a + ${10} WHERE id = ${n}`.then(told));
        await step(`returning ${n}`, () => sql`UPDATE plain SET ${sql({ b: 'c', a: 7 })} WHERE id = ${n} RETURNING *`.then(told));
        await step(`delete ${n}`, () => sql`DELETE FROM plain WHERE id = ${n}`.then(told));
    }
    await step('kinds', () => sql`INSERT INTO kinds (big, bytes, at, docb, numbers, yes, words) VALUES (${'7'}, ${Buffer.from([0, 255])}, ${new Date(0)},
        ${sql.json({ a: [null] })}, ${[1, 2]}, ${true}, ${null}) RETURNING *`.then(told));
    await step('generated', () => sql`INSERT INTO child (parent_id) VALUES (${1}) RETURNING id`.then(told));
    await step('several rows', () => sql`INSERT INTO plain ${sql([{ id: 100, a: 1 }, { id: 101, a: 2 }])} RETURNING id`.then(told));
    await step('unique', () => sql`INSERT INTO parent (id, name) VALUES (${2}, ${'one'})`.then(told));
    await step('foreign', () => sql`INSERT INTO child (parent_id) VALUES (${77})`.then(told));
    await step('late', () => sql`INSERT INTO late VALUES (${1}, ${999})`.then(told));
    await step('noisy', () => sql`INSERT INTO noisy VALUES (${1}, ${'warn'})`.then(told));
    await step('table', () => sql`INSERT INTO nowhere VALUES (${1})`.then(told));
    await step('type', () => sql`INSERT INTO plain (id, a) VALUES (${102}, ${'abc'})`.then(told));
    await step('script', () => sql.unsafe('INSERT INTO plain (id) VALUES (110); SELECT 1 AS x').then((all) => all.map(told)));
}

async function pipelined(sql) {
    const insert = (n) => sql`INSERT INTO plain (id, a) VALUES (${n}, ${n}) RETURNING id`;
    await step('mixed', () => Promise.all(Array.from({ length: 120 }, (_, n) =>
        insert(n % 9 === 5 ? 1000 : 1000 + n).then((rows) => rows[0].id, (error) => [error.code, error.detail]))));
    await step('kinds of statements', () => Promise.all([
        insert(2000), sql`SELECT count(*)::int FROM plain WHERE id = 2000`, sql`UPDATE plain SET a = 1 WHERE id = 2000`, sql`SELECT a FROM plain WHERE id = 2000`,
        sql`DELETE FROM plain WHERE id = 2000`, insert(2000), sql`SELECT nothing`.catch((error) => [error.code]),
    ]).then((all) => all.map((one) => (one.command ? told(one) : one))));
}

async function transactions(sql) {
    await step('commit', () => sql.begin(async (tx) => [told(await tx`INSERT INTO plain (id) VALUES (3000)`), told(await tx`SELECT count(*)::int FROM plain WHERE id = 3000`)]));
    await step('rollback', () => sql.begin(async (tx) => { await tx`INSERT INTO plain (id) VALUES (3001)`; await tx`INSERT INTO plain (id) VALUES (3000)`; }));
    await step('savepoint', () => sql.begin(async (tx) => {
        await tx`INSERT INTO plain (id) VALUES (3002)`;
        await tx.savepoint((inner) => inner`INSERT INTO plain (id) VALUES (3000)`).catch(() => {});
        return told(await tx`INSERT INTO plain (id) VALUES (3003)`);
    }));
    await step('pipelined', () => sql.begin((tx) => [tx`INSERT INTO plain (id) VALUES (3004)`, tx`INSERT INTO plain (id) VALUES (3005)`]).then((all) => all.map(told)));
    await step('left', () => sql`SELECT id FROM plain WHERE id >= 3000 ORDER BY id`.then(told));
    await step('cursor', async () => {
        const seen = [];
        await sql`SELECT n FROM generate_series(1, 25) n`.cursor(10, (rows) => seen.push(rows.length));
        return seen;
    });
}

async function others(sql) {
    let heard;
    const ding = new Promise((resolve) => { heard = resolve; });
    const { unlisten } = await sql.listen('bell', heard);
    await sql.notify('bell', 'ding');
    await step('heard', () => ding);
    await unlisten();
    const own = await sql.reserve();
    await step('zone', () => own`SET TIME ZONE 'Asia/Tokyo'`.then(told));
    await step('stamped', () => own`INSERT INTO stamped (id) VALUES (${1}) RETURNING zone`.then(told));
    await step('reset', () => own`RESET ALL`.then(told));
    own.release();
    const slow = sql`SELECT pg_sleep(60)`;
    setTimeout(() => slow.cancel(), 300);
    await step('canceled', () => slow);
    await step('goes on', () => sql`INSERT INTO plain (id) VALUES (${4000})`.then(told));
    await step('large', () => sql`INSERT INTO plain (id, b) VALUES (${4001}, ${'x'.repeat(1_000_000)}) RETURNING length(b)`.then(told));
}

async function main() {
    const sql = postgres(url, options);
    await play([schema, writes, pipelined, transactions, others], sql);
    await sql.end();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
