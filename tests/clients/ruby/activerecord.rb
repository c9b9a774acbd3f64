require "active_record"

ActiveRecord::Base.establish_connection(
  adapter: "postgresql", host: "127.0.0.1", port: 6432, database: "shop", username: "app", pool: 8
)

class Order < ActiveRecord::Base
end

ids = Array.new(8) do
  Thread.new do
    Order.connection_pool.with_connection do
      Array.new(50) { |n| Order.insert({ item: "cart #{n}" }, returning: :id).rows[0][0] }
    end
  end
end.flat_map(&:value)
puts "#{ids.uniq.size} rows, each with an id of its own"

begin
  Order.insert!({ item: "" })
rescue ActiveRecord::StatementInvalid => error
  puts error.cause.class
end
