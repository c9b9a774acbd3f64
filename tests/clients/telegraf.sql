CREATE TABLE cpu (
    time timestamptz, host text, cpu text,
    usage_user double precision, usage_system double precision, usage_idle double precision,
    PRIMARY KEY (host, cpu, time)
)
