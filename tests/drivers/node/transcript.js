// What the scenario programs share: steps that become lines of JSON.
'use strict';

const fs = require('fs');
const path = require('path');

const FIELDS = ['code', 'severity', 'message', 'detail', 'hint', 'position', 'where', 'schema', 'table', 'column', 'dataType', 'constraint',
    'file', 'line', 'routine', 'schema_name', 'table_name', 'column_name', 'type_name', 'constraint_name'];

let scenario = '';

function fields(error) {
    const told = { class: error.constructor.name };
    for (const name of FIELDS) {
        if (error[name] !== undefined) told[name] = error[name];
    }
    return told;
}

function show(value) {
    if (Buffer.isBuffer(value)) return value.length > 200 ? `buffer:${value.length}` : `buffer:${value.toString('hex')}`;
    if (value instanceof Date) return `date:${value.toISOString()}`;
    if (typeof value === 'bigint') return `bigint:${value}`;
    if (typeof value === 'number' && !Number.isFinite(value)) return `number:${value}`;
    if (Object.is(value, -0)) return 'number:-0';
    if (Array.isArray(value)) return value.map(show);
    if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, show(v)]));
    return value === undefined ? null : value;
}

function say(step, what) {
    process.stdout.write(JSON.stringify({ scenario, step, ...what }) + '\n');
}

async function step(name, action) {
    try {
        say(name, { value: show(await action()) });
    } catch (error) {
        if (error instanceof TypeError || error instanceof ReferenceError) throw error;
        say(name, { error: fields(error) });
    }
}

function blocks() {
    const text = fs.readFileSync(path.join(__dirname, '..', 'schema.sql'), 'utf8');
    return text.split('\n\n').map((block) => block.trim());
}

async function play(scenarios, ...given) {
    for (const one of scenarios) {
        scenario = one.name;
        await one(...given);
    }
}

module.exports = { blocks, fields, play, say, show, step };
