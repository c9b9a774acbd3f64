// The scenarios of all frameworks for Node. Each prints one line of JSON and waits until the test has read it.
//
// A framework is an object with
//   schema()                          creates the tables
//   customer(name)                    creates a customer; { id, name, created_at }
//   customerWithAddresses(name, list) creates a customer with addresses, each [street] or [street, country], in one unit of work
//   unit(work)                        calls work(u) in a unit of work, where u has order(customerId, number, lines), each line
//                                     [product] or [product, qty], which gives { id, created_at }, and nested(work): a savepoint
//   update(id, note)                  reads an order and changes it
//   remove(number)                    reads an order with its lines and deletes them
//   addresses(customerId)             reads [street, country] by street
//   seen(number)                      reads an order: null, or { number, note, lines: [[product, qty]] } by product
//   orders()                          reads all orders: [{ id, number, created_at }]
//   end()                             closes everything
const fs = require("fs");

const WORKERS = 20;
const ROUNDS = 5;

function step(name, value) {
  fs.writeSync(1, JSON.stringify({ [name]: sorted(value) }) + "\n");
  const byte = Buffer.alloc(1);
  while (fs.readSync(0, byte, 0, 1) === 1 && byte[0] !== 10);
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

// The classes of an exception and of what it was made from, and the server's fields that are the same in every run.
function describe(error) {
  const shown = { classes: [] };
  const met = new Set();
  while (error && !met.has(error)) {
    met.add(error);
    shown.classes.push(error.constructor.name);
    for (const name of ["code", "constraint", "table", "column"]) {
      if (typeof error[name] === "string") shown[name] = error[name];
    }
    error = error.cause ?? error.driverError ?? error.parent ?? error.previous;
  }
  return shown;
}

async function refused(work) {
  try {
    await work();
  } catch (error) {
    return describe(error);
  }
  return "no error";
}

class Undone extends Error {}

async function invalid(shop, customer) {
  const attempt = (...order) => refused(() => shop.unit((u) => u.order(...order)));
  return {
    null: await attempt(customer, null, [["apple"]]),
    long: await attempt(customer, "N".repeat(21), [["apple"]]),
    check: await attempt(customer, "A-3", [["apple", 0]]),
    parent: await attempt(999999, "A-4", [["apple"]]),
    left: [await shop.seen("A-3"), await shop.seen("A-4")],
  };
}

async function duplicate(shop, customer) {
  const error = await refused(() => shop.unit(async (u) => {
    await u.order(customer, "B-1", [["apple"]]);
    await u.order(customer, "A-1", [["pear"]]);
  }));
  await shop.unit((u) => u.order(customer, "B-2", [["plum"]]));
  return { error, first: await shop.seen("B-1"), next: await shop.seen("B-2") };
}

async function rollback(shop, customer) {
  const error = await refused(() => shop.unit(async (u) => {
    await u.order(customer, "C-1", [["apple"]]);
    throw new Undone();
  }));
  return { error, seen: await shop.seen("C-1") };
}

async function savepoint(shop, customer) {
  let error;
  await shop.unit(async (u) => {
    await u.order(customer, "D-1", [["apple"]]);
    await u.nested((inner) => inner.order(customer, "D-2", [["pear"]]));
    error = await refused(() => u.nested((inner) => inner.order(customer, "A-1", [["plum"]])));
    await u.order(customer, "D-3", [["fig"]]);
  });
  const seen = [];
  for (const number of ["D-1", "D-2", "D-3"]) seen.push(await shop.seen(number));
  return { error, seen };
}

async function worker(shop, number) {
  const made = [];
  for (let turn = 0; turn < ROUNDS; turn++) {
    const owner = await shop.customerWithAddresses(`worker ${number} ${turn}`, [["X"], ["Y"], ["Z"]]);
    const name = `W-${number}-${turn}`;
    const order = await shop.unit((u) => u.order(owner.id, name, [["apple"], ["pear"], ["plum", 5]]));
    made.push({ ...order, number: name });
  }
  return made;
}

async function workers(shop) {
  const made = (await Promise.all(Array.from({ length: WORKERS }, (_, number) => worker(shop, number)))).flat();
  const found = new Map((await shop.orders()).map((order) => [order.id, order]));
  const isAsRead = ({ id, number, created_at }) =>
    found.get(id).number === number && found.get(id).created_at.getTime() === created_at.getTime();
  return { orders: made.length, "as read": made.every(isAsRead) };
}

async function play(shop) {
  await shop.schema();
  step("schema", null);
  const ada = await shop.customer("Ada");
  step("customer", { name: ada.name, created: ada.created_at instanceof Date });
  const bob = await shop.customerWithAddresses("Bob", [["A"], ["B"], ["C", "BE"]]);
  step("addresses", await shop.addresses(bob.id));
  const { id } = await shop.unit((u) => u.order(ada.id, "A-1", [["apple"], ["pear"], ["plum", 5]]));
  step("order", await shop.seen("A-1"));
  await shop.update(id, "changed");
  step("update", await shop.seen("A-1"));
  await shop.unit((u) => u.order(ada.id, "A-2", [["apple"], ["pear"]]));
  await shop.remove("A-2");
  step("delete", await shop.seen("A-2"));
  // With late transactions no program goes on after a failed INSERT.
  const scenarios = process.env.SHOP_LATE ? [invalid, duplicate, rollback] : [invalid, duplicate, rollback, savepoint];
  for (const scenario of scenarios) step(scenario.name, await scenario(shop, ada.id));
  step("workers", await workers(shop));
  await shop.end();
}

module.exports = (shop) => play(shop).catch((error) => {
  console.error(error);
  process.exit(1);
});
