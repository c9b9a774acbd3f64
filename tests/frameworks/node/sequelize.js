// Sequelize in its default configuration: a call alone is in autocommit, also one that includes children; `transaction` is a
// transaction, and with another one a savepoint.
const { Sequelize, DataTypes } = require("sequelize");
const play = require("./program.js");

const sequelize = new Sequelize(process.argv[2], { logging: false });
const names = { timestamps: false, underscored: true };
const created_at = { type: DataTypes.DATE, allowNull: false, defaultValue: Sequelize.fn("now") };

const Customer = sequelize.define("Customer", { name: { type: DataTypes.STRING(40), allowNull: false }, created_at }, { ...names, tableName: "customers" });
const Address = sequelize.define("Address", {
  street: { type: DataTypes.TEXT, allowNull: false },
  country: { type: DataTypes.STRING(2), allowNull: false, defaultValue: "NL" },
}, { ...names, tableName: "addresses" });
const Order = sequelize.define("Order", {
  // NULL is refused by the server here, not by Sequelize.
  number: { type: "VARCHAR(20) NOT NULL", unique: true },
  note: DataTypes.TEXT,
}, { ...names, timestamps: true, updatedAt: false, tableName: "orders" });
const Line = sequelize.define("Line", {
  product: { type: DataTypes.TEXT, allowNull: false },
  qty: { type: "INTEGER NOT NULL CONSTRAINT order_lines_qty CHECK (qty > 0)", defaultValue: 1 },
}, { ...names, tableName: "order_lines" });
const required = { foreignKey: { name: "customer_id", allowNull: false } };
Customer.hasMany(Address, { as: "addresses", ...required });
Customer.hasMany(Order, required);
Order.hasMany(Line, { as: "lines", foreignKey: { name: "order_id", allowNull: false } });

const within = (transaction) => ({
  async order(customer_id, number, lines) {
    const values = { customer_id, number, lines: lines.map(([product, qty]) => ({ product, qty })) };
    const { id, createdAt } = await Order.create(values, { include: "lines", transaction });
    return { id, created_at: createdAt };
  },
  nested: (work) => sequelize.transaction({ transaction }, (inner) => work(within(inner))),
});

play({
  schema: () => sequelize.sync(),
  customer: async (name) => {
    const made = await Customer.create({ name });
    return made.get({ plain: true });
  },
  customerWithAddresses: (name, list) =>
    Customer.create({ name, addresses: list.map(([street, country]) => ({ street, country })) }, { include: "addresses" }),
  addresses: async (customer_id) =>
    (await Address.findAll({ where: { customer_id }, order: ["street"] })).map((a) => [a.street, a.country]),
  unit: (work) => sequelize.transaction((transaction) => work(within(transaction))),
  async update(id, note) {
    const found = await Order.findByPk(id);
    found.note = note;
    await found.save();
  },
  async remove(number) {
    const found = await Order.findOne({ where: { number }, include: "lines" });
    for (const line of found.lines) await line.destroy();
    await found.destroy();
  },
  async seen(number) {
    const found = await Order.findOne({ where: { number }, include: "lines", order: [["lines", "product", "ASC"]] });
    return found && { number, note: found.note, lines: found.lines.map((line) => [line.product, line.qty]) };
  },
  orders: async () => (await Order.findAll()).map(({ id, number, createdAt }) => ({ id, number, created_at: createdAt })),
  end: () => sequelize.close(),
});
