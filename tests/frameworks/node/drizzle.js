// Drizzle in its default configuration: a query alone is in autocommit, `transaction` is a transaction, and in it a savepoint.
const { drizzle } = require("drizzle-orm/node-postgres");
const { relations, eq, asc } = require("drizzle-orm");
const { pgTable, serial, integer, varchar, text, timestamp } = require("drizzle-orm/pg-core");
const fs = require("fs");
const path = require("path");
const play = require("./program.js");

const created_at = () => timestamp("created_at", { withTimezone: true }).notNull().defaultNow();
const customers = pgTable("customers", { id: serial("id").primaryKey(), name: varchar("name", { length: 40 }).notNull(), created_at: created_at() });
const addresses = pgTable("addresses", {
  id: serial("id").primaryKey(),
  customer_id: integer("customer_id").notNull().references(() => customers.id),
  street: text("street").notNull(),
  country: varchar("country", { length: 2 }).notNull().default("NL"),
});
const orders = pgTable("orders", {
  id: integer("id").primaryKey().generatedAlwaysAsIdentity(),
  customer_id: integer("customer_id").notNull().references(() => customers.id),
  number: varchar("number", { length: 20 }).notNull().unique(),
  note: text("note"),
  created_at: created_at(),
});
const order_lines = pgTable("order_lines", {
  id: serial("id").primaryKey(),
  order_id: integer("order_id").notNull().references(() => orders.id),
  product: text("product").notNull(),
  qty: integer("qty").notNull().default(1),
});
const ordersRelations = relations(orders, ({ many }) => ({ lines: many(order_lines) }));
const linesRelations = relations(order_lines, ({ one }) => ({
  order: one(orders, { fields: [order_lines.order_id], references: [orders.id] }),
}));

const db = drizzle(process.argv[2], { schema: { customers, addresses, orders, order_lines, ordersRelations, linesRelations } });

const within = (tx) => ({
  async order(customer_id, number, lines) {
    const [made] = await tx.insert(orders).values({ customer_id, number }).returning();
    await tx.insert(order_lines).values(lines.map(([product, qty]) => ({ order_id: made.id, product, qty })));
    return made;
  },
  nested: (work) => tx.transaction((inner) => work(within(inner))),
});

play({
  schema: () => db.execute(fs.readFileSync(path.join(__dirname, "../schema.sql"), "utf8")),
  customer: async (name) => (await db.insert(customers).values({ name }).returning())[0],
  customerWithAddresses: (name, list) =>
    db.transaction(async (tx) => {
      const [made] = await tx.insert(customers).values({ name }).returning();
      await tx.insert(addresses).values(list.map(([street, country]) => ({ customer_id: made.id, street, country })));
      return made;
    }),
  addresses: async (id) =>
    (await db.select().from(addresses).where(eq(addresses.customer_id, id)).orderBy(asc(addresses.street))).map((a) => [a.street, a.country]),
  unit: (work) => db.transaction((tx) => work(within(tx))),
  async update(id, note) {
    const [found] = await db.select().from(orders).where(eq(orders.id, id));
    await db.update(orders).set({ note }).where(eq(orders.id, found.id));
  },
  remove: (number) =>
    db.transaction(async (tx) => {
      const [found] = await tx.select().from(orders).where(eq(orders.number, number));
      await tx.delete(order_lines).where(eq(order_lines.order_id, found.id));
      await tx.delete(orders).where(eq(orders.id, found.id));
    }),
  async seen(number) {
    const found = await db.query.orders.findFirst({
      where: eq(orders.number, number),
      with: { lines: { orderBy: asc(order_lines.product) } },
    });
    return found ? { number, note: found.note, lines: found.lines.map((line) => [line.product, line.qty]) } : null;
  },
  orders: () => db.select().from(orders),
  end: () => db.$client.end(),
});
