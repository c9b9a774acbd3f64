CREATE TABLE customers (
    id serial PRIMARY KEY,
    name varchar(40) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE addresses (
    id serial PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES customers,
    street text NOT NULL,
    country varchar(2) NOT NULL DEFAULT 'NL'
);

CREATE TABLE orders (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES customers,
    number varchar(20) NOT NULL UNIQUE,
    note text,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE order_lines (
    id serial PRIMARY KEY,
    order_id integer NOT NULL REFERENCES orders,
    product text NOT NULL,
    qty integer NOT NULL DEFAULT 1 CONSTRAINT order_lines_qty CHECK (qty > 0)
);
