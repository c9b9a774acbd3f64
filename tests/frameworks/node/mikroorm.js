// MikroORM in its default configuration: a flush is a transaction, `transactional` is one, and in it a savepoint.
const { EntitySchema, MikroORM } = require("@mikro-orm/postgresql");
const play = require("./program.js");

const id = { type: "number", primary: true };
const created_at = { type: "datetime", fieldName: "created_at", defaultRaw: "now()" };

const Customer = new EntitySchema({
  name: "Customer",
  tableName: "customers",
  properties: {
    id,
    name: { type: "string", length: 40 },
    created_at,
    addresses: { kind: "1:m", entity: "Address", mappedBy: "customer", orderBy: { street: "asc" } },
  },
});
const Address = new EntitySchema({
  name: "Address",
  tableName: "addresses",
  properties: {
    id,
    customer: { kind: "m:1", entity: "Customer" },
    street: { type: "text" },
    country: { type: "string", length: 2, default: "NL" },
  },
});
const Order = new EntitySchema({
  name: "Order",
  tableName: "orders",
  properties: {
    id,
    customer: { kind: "m:1", entity: "Customer" },
    number: { type: "string", length: 20, unique: true },
    note: { type: "text", nullable: true },
    created_at,
    lines: { kind: "1:m", entity: "Line", mappedBy: "order", orphanRemoval: true, orderBy: { product: "asc" } },
  },
});
const Line = new EntitySchema({
  name: "Line",
  tableName: "order_lines",
  properties: {
    id,
    order: { kind: "m:1", entity: "Order" },
    product: { type: "text" },
    qty: { type: "number", default: 1 },
  },
  checks: [{ name: "order_lines_qty", expression: "qty > 0" }],
});

let orm;

const within = (em) => ({
  async order(customer, number, lines) {
    const made = em.create("Order", { customer, number });
    for (const [product, qty] of lines) made.lines.add(em.create("Line", { order: made, product, qty }));
    await em.persistAndFlush(made);
    return { id: made.id, created_at: made.created_at };
  },
  nested: (work) => em.transactional((inner) => work(within(inner))),
});

play({
  async schema() {
    // NULL is refused by the server here, not by MikroORM.
    orm = await MikroORM.init({ clientUrl: process.argv[2], entities: [Customer, Address, Order, Line], validateRequired: false });
    await orm.schema.createSchema();
  },
  async customer(name) {
    const em = orm.em.fork();
    const made = em.create("Customer", { name });
    await em.persistAndFlush(made);
    return made;
  },
  async customerWithAddresses(name, list) {
    const em = orm.em.fork();
    const made = em.create("Customer", { name });
    for (const [street, country] of list) made.addresses.add(em.create("Address", { customer: made, street, country }));
    await em.persistAndFlush(made);
    return made;
  },
  addresses: async (customer) =>
    (await orm.em.fork().find("Address", { customer }, { orderBy: { street: "asc" } })).map((a) => [a.street, a.country]),
  unit: (work) => orm.em.fork().transactional((em) => work(within(em))),
  async update(id, note) {
    const em = orm.em.fork();
    const found = await em.findOneOrFail("Order", { id });
    found.note = note;
    await em.flush();
  },
  async remove(number) {
    const em = orm.em.fork();
    const found = await em.findOneOrFail("Order", { number }, { populate: ["lines"] });
    await em.removeAndFlush(found);
  },
  async seen(number) {
    const found = await orm.em.fork().findOne("Order", { number }, { populate: ["lines"] });
    return found && { number, note: found.note, lines: found.lines.getItems().map((line) => [line.product, line.qty]) };
  },
  orders: () => orm.em.fork().find("Order", {}),
  end: () => orm.close(),
});
