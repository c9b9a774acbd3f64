# ActiveRecord in its default configuration: create, update and destroy are a transaction each.
require "active_record"
require "uri"
require_relative "program"

WORKERS = 20
ROUNDS = 5

ActiveRecord::Base.establish_connection(ARGV[0].sub("postgres:", "postgresql:") + "?pool=#{WORKERS + 1}")

class Customer < ActiveRecord::Base
  has_many :addresses, -> { order(:street) }
end

class Address < ActiveRecord::Base
  belongs_to :customer
end

class Order < ActiveRecord::Base
  has_many :lines, -> { order(:product) }, dependent: :destroy
end

class Line < ActiveRecord::Base
  self.table_name = "order_lines"
  belongs_to :order
end

def schema
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define do
    create_table(:customers) do |t|
      t.string :name, limit: 40, null: false
      t.timestamp :created_at, null: false
    end
    create_table(:addresses) do |t|
      t.references :customer, null: false, foreign_key: true
      t.text :street, null: false
      t.string :country, limit: 2, null: false, default: "NL"
    end
    create_table(:orders) do |t|
      t.references :customer, null: false, foreign_key: { name: "orders_customer" }
      t.string :number, limit: 20, null: false, index: { unique: true }
      t.text :note
      t.timestamp :created_at, null: false
    end
    create_table(:order_lines) do |t|
      t.references :order, null: false, foreign_key: true
      t.text :product, null: false
      t.integer :qty, null: false, default: 1
      t.check_constraint "qty > 0", name: "order_lines_qty"
    end
  end
end

def order(customer_id, number, *products)
  lines = products.map { |product| Line.new(product: product) }
  lines.last.qty = 5
  Order.create!(customer_id: customer_id, number: number, lines: lines)
end

def seen(number)
  found = Order.find_by(number: number)
  found && { number: found.number, note: found.note, lines: found.lines.map { |line| [line.product, line.qty] } }
end

def customer_with_addresses(name, list)
  Customer.create!(name: name, addresses: list.map { |street, country| Address.new({ street: street, country: country }.compact) })
end

def invalid(customer)
  nothing = Line.new(product: "apple", qty: 0)
  {
    null: refused { order(customer, nil, "apple") },
    long: refused { order(customer, "N" * 21, "apple") },
    check: refused { Order.create!(customer_id: customer, number: "A-3", lines: [nothing]) },
    parent: refused { order(999999, "A-4", "apple") },
    left: [seen("A-3"), seen("A-4")]
  }
end

def duplicate(customer)
  error = refused do
    Order.transaction do
      order(customer, "B-1", "apple")
      order(customer, "A-1", "pear")
    end
  end
  order(customer, "B-2", "plum")
  { error: error, first: seen("B-1"), next: seen("B-2") }
end

def rollback(customer)
  Order.transaction do
    order(customer, "C-1", "apple")
    raise ActiveRecord::Rollback
  end
  seen("C-1")
end

def savepoint(customer)
  error = nil
  Order.transaction do
    order(customer, "D-1", "apple")
    Order.transaction(requires_new: true) { order(customer, "D-2", "pear") }
    error = refused { Order.transaction(requires_new: true) { order(customer, "A-1", "plum") } }
    order(customer, "D-3", "fig")
  end
  { error: error, seen: %w[D-1 D-2 D-3].map { |number| seen(number) } }
end

def worker(number)
  Array.new(ROUNDS) do |turn|
    owner = customer_with_addresses("worker #{number} #{turn}", [["X"], ["Y"], ["Z"]])
    order(owner.id, "W-#{number}-#{turn}", "apple", "pear", "plum")
  end
end

def workers
  threads = Array.new(WORKERS) { |number| Thread.new { Order.connection_pool.with_connection { worker(number) } } }
  made = threads.flat_map(&:value)
  { orders: made.size, "as read": made.all? { |one| Order.find(one.id).number == one.number } }
end

schema
step("schema", nil)
ada = Customer.create!(name: "Ada")
step("customer", { name: ada.name, created: !ada.created_at.nil? })
bob = customer_with_addresses("Bob", [["A"], ["B"], ["C", "BE"]])
step("addresses", Address.where(customer_id: bob.id).order(:street).pluck(:street, :country))
first = order(ada.id, "A-1", "apple", "pear", "plum")
step("order", seen("A-1"))
Order.find(first.id).update!(note: "changed")
step("update", seen("A-1"))
order(ada.id, "A-2", "apple", "pear")
Order.find_by!(number: "A-2").destroy!
step("delete", seen("A-2"))
step("invalid", invalid(ada.id))
step("duplicate", duplicate(ada.id))
step("rollback", rollback(ada.id))
# With late transactions no program goes on after a failed INSERT.
step("savepoint", savepoint(ada.id)) unless ENV["SHOP_LATE"]
step("workers", workers)
