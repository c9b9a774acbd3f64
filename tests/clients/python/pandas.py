import pandas
from sqlalchemy import create_engine

engine = create_engine("postgresql+psycopg://app@127.0.0.1:6432/shop")
frame = pandas.DataFrame({"item": [f"rake {n}" for n in range(1000)]})
frame.to_sql("orders", engine, if_exists="append", index=False)
print(pandas.read_sql("SELECT count(*) AS rakes FROM orders WHERE item LIKE 'rake%%'", engine).rakes[0], "rows")
