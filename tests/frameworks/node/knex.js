// Knex in its default configuration: a query alone is in autocommit, `transaction` is a transaction, and in it a savepoint.
const knex = require("knex")({ client: "pg", connection: process.argv[2] });
const play = require("./program.js");

async function schema() {
  await knex.schema.createTable("customers", (table) => {
    table.increments("id");
    table.string("name", 40).notNullable();
    table.timestamp("created_at").notNullable().defaultTo(knex.fn.now());
  });
  await knex.schema.createTable("addresses", (table) => {
    table.increments("id");
    table.integer("customer_id").notNullable().references("customers.id");
    table.text("street").notNullable();
    table.string("country", 2).notNullable().defaultTo("NL");
  });
  await knex.schema.createTable("orders", (table) => {
    table.increments("id");
    table.integer("customer_id").notNullable().references("customers.id");
    table.string("number", 20).notNullable().unique();
    table.text("note");
    table.timestamp("created_at").notNullable().defaultTo(knex.fn.now());
  });
  await knex.schema.createTable("order_lines", (table) => {
    table.increments("id");
    table.integer("order_id").notNullable().references("orders.id");
    table.text("product").notNullable();
    table.integer("qty").notNullable().defaultTo(1).checkPositive("order_lines_qty");
  });
}

const within = (trx) => ({
  async order(customer_id, number, lines) {
    const [made] = await trx("orders").insert({ customer_id, number }).returning(["id", "created_at"]);
    await trx("order_lines").insert(lines.map(([product, qty]) => ({ order_id: made.id, product, qty })));
    return made;
  },
  nested: (work) => trx.transaction((inner) => work(within(inner))),
});

play({
  schema,
  customer: async (name) => (await knex("customers").insert({ name }).returning("*"))[0],
  customerWithAddresses: (name, list) =>
    knex.transaction(async (trx) => {
      const [made] = await trx("customers").insert({ name }).returning("*");
      await trx("addresses").insert(list.map(([street, country]) => ({ customer_id: made.id, street, country })));
      return made;
    }),
  addresses: async (customer_id) =>
    (await knex("addresses").where({ customer_id }).orderBy("street")).map((a) => [a.street, a.country]),
  unit: (work) => knex.transaction((trx) => work(within(trx))),
  async update(id, note) {
    const found = await knex("orders").where({ id }).first();
    await knex("orders").where({ id: found.id }).update({ note });
  },
  remove: (number) =>
    knex.transaction(async (trx) => {
      const found = await trx("orders").where({ number }).first();
      await trx("order_lines").where({ order_id: found.id }).del();
      await trx("orders").where({ id: found.id }).del();
    }),
  async seen(number) {
    const found = await knex("orders").where({ number }).first();
    if (!found) return null;
    const lines = await knex("order_lines").where({ order_id: found.id }).orderBy("product");
    return { number, note: found.note, lines: lines.map((line) => [line.product, line.qty]) };
  },
  orders: () => knex("orders"),
  end: () => knex.destroy(),
});
