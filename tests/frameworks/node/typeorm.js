// TypeORM in its default configuration: save() and remove() are a transaction each.
require("reflect-metadata");
const { DataSource, EntitySchema } = require("typeorm");
const play = require("./program.js");

const id = { type: "int", primary: true, generated: "increment" };
const created_at = { type: "timestamptz", createDate: true };

const Customer = new EntitySchema({
  name: "Customer",
  tableName: "customers",
  columns: { id, name: { type: "varchar", length: 40 }, created_at },
  relations: { addresses: { type: "one-to-many", target: "Address", inverseSide: "customer", cascade: true } },
});

const Address = new EntitySchema({
  name: "Address",
  tableName: "addresses",
  columns: { id, customer_id: { type: "int" }, street: { type: "text" }, country: { type: "varchar", length: 2, default: "NL" } },
  relations: { customer: { type: "many-to-one", target: "Customer", inverseSide: "addresses", joinColumn: { name: "customer_id" } } },
});

const Order = new EntitySchema({
  name: "Order",
  tableName: "orders",
  columns: {
    id,
    customer_id: { type: "int" },
    number: { type: "varchar", length: 20, unique: true },
    note: { type: "text", nullable: true },
    created_at,
  },
  relations: {
    customer: { type: "many-to-one", target: "Customer", joinColumn: { name: "customer_id" } },
    lines: { type: "one-to-many", target: "Line", inverseSide: "order", cascade: true },
  },
});

const Line = new EntitySchema({
  name: "Line",
  tableName: "order_lines",
  columns: { id, order_id: { type: "int" }, product: { type: "text" }, qty: { type: "int", default: 1 } },
  relations: { order: { type: "many-to-one", target: "Order", inverseSide: "lines", joinColumn: { name: "order_id" } } },
  checks: [{ name: "order_lines_qty", expression: "qty > 0" }],
});

const source = new DataSource({ type: "postgres", url: process.argv[2], synchronize: true, entities: [Customer, Address, Order, Line] });
const repository = (name) => source.getRepository(name);

const within = (manager) => ({
  async order(customer_id, number, lines) {
    const made = { customer_id, number, lines: lines.map(([product, qty]) => ({ product, qty })) };
    const { id, created_at } = await manager.save("Order", made);
    return { id, created_at };
  },
  nested: (work) => manager.transaction((inner) => work(within(inner))),
});

play({
  schema: () => source.initialize(),
  customer: (name) => repository("Customer").save({ name }),
  customerWithAddresses: (name, list) =>
    repository("Customer").save({ name, addresses: list.map(([street, country]) => ({ street, country })) }),
  addresses: async (customer_id) =>
    (await repository("Address").find({ where: { customer_id }, order: { street: "ASC" } })).map((a) => [a.street, a.country]),
  unit: (work) => source.transaction((manager) => work(within(manager))),
  async update(id, note) {
    const found = await repository("Order").findOneBy({ id });
    found.note = note;
    await repository("Order").save(found);
  },
  async remove(number) {
    const found = await repository("Order").findOne({ where: { number }, relations: { lines: true } });
    await source.manager.remove("Line", found.lines);
    await source.manager.remove("Order", found);
  },
  async seen(number) {
    const found = await repository("Order").findOne({ where: { number }, relations: { lines: true }, order: { lines: { product: "ASC" } } });
    return found && { number, note: found.note, lines: found.lines.map((line) => [line.product, line.qty]) };
  },
  orders: () => repository("Order").find(),
  end: () => source.destroy(),
});
