# Shared by the programs in Ruby: each step prints one line of JSON and waits until the test has read it.
require "json"

def step(name, value)
  puts JSON.generate(name => sorted(value))
  $stdout.flush
  $stdin.gets
end

def sorted(value)
  case value
  when Hash then value.sort_by { |key, _| key.to_s }.to_h { |key, inner| [key, sorted(inner)] }
  when Array then value.map { |inner| sorted(inner) }
  else value
  end
end

# Describes the error that a block raises: its classes, and the server's fields that are the same in every run.
def refused
  yield
  "no error"
rescue ActiveRecord::ActiveRecordError => error
  describe(error)
end

def describe(error)
  shown = { classes: [] }
  while error
    shown[:classes] << error.class.name
    if error.respond_to?(:result) && error.result
      shown[:state] = error.result.error_field(PG::Result::PG_DIAG_SQLSTATE)
      shown[:constraint] = error.result.error_field(PG::Result::PG_DIAG_CONSTRAINT_NAME)
    end
    error = error.cause
  end
  shown
end
