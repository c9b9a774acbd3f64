package windrow;

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Array;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.copy.CopyManager;
import org.postgresql.util.PGobject;
import org.postgresql.util.PSQLException;

/** Scenarios for pgjdbc. Usage: Scenarios URL [extended | simple | cache | binary | rewrite | crowd] */
public final class Scenarios {
    private static final int MANY = 10_000;

    private final Transcript say = new Transcript();
    private final String url;
    private final String mode;

    private Scenarios(String url, String mode) {
        this.url = url;
        this.mode = mode;
    }

    private Connection connect(String more) throws SQLException {
        String options = switch (mode) {
            case "simple" -> "&preferQueryMode=simple";
            case "cache" -> "&preferQueryMode=extendedCacheEverything";
            case "binary" -> "&prepareThreshold=-1";
            case "rewrite" -> "&reWriteBatchedInserts=true";
            default -> "";
        };
        // postgres://role@host:port/database
        String rest = url.substring(url.indexOf("://") + 3);
        String role = rest.substring(0, rest.indexOf('@'));
        String place = rest.substring(rest.indexOf('@') + 1);
        return DriverManager.getConnection("jdbc:postgresql://" + place + "?user=" + role + options + more);
    }

    private static List<Object> rows(ResultSet rows) throws SQLException {
        ResultSetMetaData meta = rows.getMetaData();
        List<Object> told = new ArrayList<>();
        List<Object> head = new ArrayList<>();
        for (int n = 1; n <= meta.getColumnCount(); n++) {
            head.add(meta.getColumnLabel(n) + " " + meta.getColumnTypeName(n));
        }
        told.add(head);
        while (rows.next()) {
            List<Object> row = new ArrayList<>();
            for (int n = 1; n <= meta.getColumnCount(); n++) {
                row.add(rows.getObject(n));
            }
            told.add(row);
        }
        return told;
    }

    private static void bind(PreparedStatement statement, Object... values) throws SQLException {
        for (int n = 0; n < values.length; n++) {
            if (values[n] == null) {
                statement.setNull(n + 1, Types.NULL);
            } else {
                statement.setObject(n + 1, values[n]);
            }
        }
    }

    /** Everything that one execution gives: counts and rows, in order, and the warnings. */
    private static Object all(Statement statement, boolean first) throws SQLException {
        List<Object> told = new ArrayList<>();
        boolean rows = first;
        while (true) {
            if (rows) {
                told.add(rows(statement.getResultSet()));
            } else if (statement.getUpdateCount() == -1) {
                break;
            } else {
                told.add(statement.getUpdateCount());
            }
            rows = statement.getMoreResults();
        }
        Object warnings = Transcript.warnings(statement.getWarnings());
        if (!((List<?>) warnings).isEmpty()) {
            told.add(warnings);
        }
        return told;
    }

    private void run(Connection c, String name, String sql, Object... values) throws Exception {
        say.step(name, () -> {
            try (PreparedStatement statement = c.prepareStatement(sql)) {
                bind(statement, values);
                return all(statement, statement.execute());
            }
        });
    }

    private void plain(Connection c, String name, String sql) throws Exception {
        say.step(name, () -> {
            try (Statement statement = c.createStatement()) {
                return all(statement, statement.execute(sql));
            }
        });
    }

    private void schema(Connection c) throws Exception {
        String text = Files.readString(Path.of(System.getenv("WINDROW_DRIVERS"), "schema.sql"));
        int number = 0;
        for (String block : text.strip().split("\n\n")) {
            plain(c, "block " + number++, block);
        }
    }

    private static PGobject typed(String type, String value) throws SQLException {
        PGobject object = new PGobject();
        object.setType(type);
        object.setValue(value);
        return object;
    }

    private void kinds(Connection c) throws Exception {
        Array numbers = c.createArrayOf("int4", new Object[] {1, null, 3});
        Array names = c.createArrayOf("text", new Object[] {"a", "b'c", "\\", null});
        String[] columns = ("small whole big single wide exact words short padded bytes yes day clock local_at at span tag doc docb numbers names feeling "
                + "address above").split(" ");
        Object[] values = {(short) -3, 70000, Long.MAX_VALUE, 1.5f, 0.1, new BigDecimal("3.141593"), "it's \\ \"q\" \u00fc\u4e2d\ud83d\ude00 ?\n", "sh", "p",
            new byte[] {0, 1, -1, '\\', '\''}, true, LocalDate.of(2024, 2, 29), LocalTime.of(1, 2, 3, 4000), LocalDateTime.of(2000, 1, 2, 3, 4, 5, 6000),
            OffsetDateTime.of(2024, 7, 1, 0, 0, 0, 0, ZoneOffset.ofHours(5)), typed("interval", "3 days"),
            java.util.UUID.fromString("00000000-0000-0000-0000-000000000005"), typed("json", "{\"a\": 1}"), typed("jsonb", "[1, null]"), numbers, names,
            typed("mood", "ok"), typed("inet", "10.0.0.1"), 5};
        String sql = "INSERT INTO kinds (" + String.join(", ", columns) + ") VALUES (" + "?, ".repeat(columns.length - 1) + "?)";
        run(c, "row", sql, values);
        run(c, "returned", sql + " RETURNING *", values);
        run(c, "nothing", sql, new Object[columns.length]);
        for (int n = 0; n < columns.length; n++) {
            run(c, "only " + columns[n], "INSERT INTO kinds (" + columns[n] + ") VALUES (?)", values[n]);
        }
        run(c, "read", "SELECT * FROM kinds ORDER BY id");
        say.step("infinite", () -> {
            try (PreparedStatement s = c.prepareStatement("INSERT INTO kinds (single, wide) VALUES (?, ?) RETURNING single, wide")) {
                s.setFloat(1, Float.NaN);
                s.setDouble(2, Double.NEGATIVE_INFINITY);
                return rows(s.executeQuery());
            }
        });
    }

    private void writes(Connection c) throws Exception {
        run(c, "parent", "INSERT INTO parent (id, name) VALUES (?, ?)", 1, "one");
        for (int n = 0; n < 8; n++) {
            say.step("generated " + n, () -> {
                try (PreparedStatement s = c.prepareStatement("INSERT INTO child (parent_id, quantity) VALUES (?, ?)", new String[] {"id"})) {
                    bind(s, 1, 5);
                    return List.of(s.executeUpdate(), rows(s.getGeneratedKeys()));
                }
            });
        }
        say.step("all keys", () -> {
            try (PreparedStatement s = c.prepareStatement("INSERT INTO child (id, parent_id, seen_at) VALUES (100, 1, '2024-01-01')", Statement.RETURN_GENERATED_KEYS)) {
                return List.of(s.executeUpdate(), rows(s.getGeneratedKeys()));
            }
        });
        run(c, "plain", "INSERT INTO child (parent_id, quantity) VALUES (?, ?)", 1, 6);
        run(c, "lastval", "SELECT lastval()");
        run(c, "currval", "SELECT currval(?::regclass)", "child_id_seq");
        for (int n = 1; n <= 12; n++) {
            run(c, "insert " + n, "INSERT INTO plain (id, a, b) VALUES (?, ?, ?)", n, n, "it's");
        }
        for (int n : new int[] {1, 99}) {
            run(c, "update " + n, "UPDATE plain SET a = a + ? WHERE id = ?", 10, n);
            run(c, "returning " + n, "UPDATE plain SET a = a + ? WHERE id = ? RETURNING a, b", 10, n);
            run(c, "delete " + n, "DELETE FROM plain WHERE id = ?", n);
            plain(c, "literal " + n, "UPDATE plain SET a = 1 WHERE id = " + n);
        }
        for (int n = 0; n < 2; n++) {
            run(c, "upsert " + n, "INSERT INTO counter AS k VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n", "u", 3);
            run(c, "ignore " + n, "INSERT INTO counter VALUES (?, ?) ON CONFLICT DO NOTHING", "w", 3);
        }
        say.step("one statement, again and again", () -> {
            List<Object> counts = new ArrayList<>();
            try (PreparedStatement s = c.prepareStatement("INSERT INTO plain (id, a, b) VALUES (?, ?, ?)")) {
                for (int n = 20; n < 40; n++) {
                    bind(s, n, n % 3 == 0 ? null : n, "again");
                    counts.add(s.executeUpdate());
                }
            }
            return counts;
        });
    }

    private void refused(Connection c) throws Exception {
        run(c, "unique", "INSERT INTO parent (id, name) VALUES (?, ?)", 2, "one");
        run(c, "primary", "INSERT INTO parent (id, name) VALUES (?, ?)", 1, "two");
        run(c, "check", "INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, ?, ?, '2000-01-01')", 1, -1);
        run(c, "foreign", "INSERT INTO child (parent_id) VALUES (?)", 77);
        run(c, "not null", "INSERT INTO parent (id, name) VALUES (?, ?)", 3, null);
        run(c, "too long", "INSERT INTO child (parent_id, label) VALUES (?, ?)", 1, "xxxxxxxxxxx");
        run(c, "range", "INSERT INTO kinds (small) VALUES (?)", 40000);
        run(c, "enum as text", "INSERT INTO kinds (feeling) VALUES (?)", "ok");
        run(c, "enum", "INSERT INTO kinds (feeling) VALUES (?)", typed("mood", "angry"));
        run(c, "type", "INSERT INTO plain (id, a) VALUES (?, ?)", 50, "abc");
        run(c, "cast", "INSERT INTO plain (id, a) VALUES (?, ?::int)", 50, "abc");
        run(c, "double", "INSERT INTO plain (id, a) VALUES (?, ?) RETURNING a", 51, 1.7);
        run(c, "table", "INSERT INTO nowhere VALUES (?)", 1);
        run(c, "column", "INSERT INTO plain (nothing) VALUES (?)", 1);
        run(c, "syntax", "INSERT INTO plain (id VALUES (?)", 1);
        run(c, "late", "INSERT INTO late VALUES (?, ?)", 1, 999);
        run(c, "word", "INSERT INTO noisy VALUES (?, ?)", 1, "word");
        run(c, "warn", "INSERT INTO noisy VALUES (?, ?)", 2, "warn");
        run(c, "refuse", "INSERT INTO noisy VALUES (?, ?)", 3, "refuse");
        run(c, "unbound", "INSERT INTO plain (id, a) VALUES (?, ?)", 1);
        run(c, "goes on", "INSERT INTO plain (id) VALUES (?)", 52);
    }

    private void transactions(Connection c) throws Exception {
        c.setAutoCommit(false);
        run(c, "insert", "INSERT INTO plain (id) VALUES (?)", 100);
        Savepoint point = c.setSavepoint("point");
        run(c, "duplicate", "INSERT INTO plain (id) VALUES (?)", 100);
        run(c, "failed", "SELECT 1");
        c.rollback(point);
        run(c, "again", "INSERT INTO plain (id) VALUES (?)", 101);
        say.step("commit", () -> { c.commit(); return null; });
        run(c, "undone", "INSERT INTO plain (id) VALUES (?)", 102);
        say.step("rollback", () -> { c.rollback(); return null; });
        run(c, "late", "INSERT INTO late VALUES (?, ?)", 2, 999);
        say.step("commit late", () -> { c.commit(); return null; });
        say.step("fetch size", () -> {
            try (Statement s = c.createStatement()) {
                s.setFetchSize(100);
                int count = 0;
                ResultSet rows = s.executeQuery("SELECT n FROM generate_series(1, " + MANY + ") n");
                while (rows.next()) {
                    count += rows.getInt(1) % 2;
                }
                return count;
            }
        });
        c.commit();
        c.setAutoCommit(true);
        say.step("isolation", () -> {
            c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            return c.getTransactionIsolation();
        });
        run(c, "serializable", "INSERT INTO plain (id) VALUES (?)", 103);
        c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        c.setReadOnly(true);
        run(c, "read only", "INSERT INTO plain (id) VALUES (?)", 104);
        c.setReadOnly(false);
        plain(c, "script", "INSERT INTO plain (id) VALUES (105); INSERT INTO plain (id) VALUES (106); SELECT 7 AS seven; UPDATE plain SET a = 1 WHERE id = 105");
        plain(c, "bad script", "INSERT INTO plain (id) VALUES (107); INSERT INTO plain (id) VALUES (106)");
        run(c, "script with parameters", "INSERT INTO plain (id) VALUES (?); UPDATE plain SET a = ? WHERE id = 105", 108, 5);
        run(c, "left", "SELECT id FROM plain WHERE id >= 100 ORDER BY id");
    }

    private void batches(Connection c) throws Exception {
        for (boolean automatic : new boolean[] {true, false}) {
            int from = automatic ? 200 : 600;
            c.setAutoCommit(automatic);
            say.step("batch " + automatic, () -> batch(c, from, from + 300));
            say.step("one bad " + automatic, () -> {
                try (PreparedStatement s = c.prepareStatement("INSERT INTO plain (id, a) VALUES (?, ?)")) {
                    for (int id : new int[] {from + 301, from, from + 302}) {
                        bind(s, id, 1);
                        s.addBatch();
                    }
                    return s.executeBatch();
                }
            });
            if (!automatic) {
                c.rollback();
            }
            say.step("different " + automatic, () -> {
                try (Statement s = c.createStatement()) {
                    s.addBatch("INSERT INTO plain (id) VALUES (" + (from + 310) + ")");
                    s.addBatch("UPDATE plain SET a = 1 WHERE id = " + (from + 310));
                    s.addBatch("DELETE FROM plain WHERE id = 12345");
                    return s.executeBatch();
                }
            });
            say.step("keys of a batch " + automatic, () -> {
                try (PreparedStatement s = c.prepareStatement("INSERT INTO child (parent_id) VALUES (?)", new String[] {"id"})) {
                    for (int n = 0; n < 5; n++) {
                        bind(s, 1);
                        s.addBatch();
                    }
                    return List.of(Arrays.toString(s.executeBatch()), rows(s.getGeneratedKeys()));
                }
            });
            if (!automatic) {
                c.commit();
            }
        }
        c.setAutoCommit(true);
        run(c, "left", "SELECT count(*), sum(a) FROM plain WHERE id >= 200");
    }

    private static Object batch(Connection c, int from, int to) throws SQLException {
        try (PreparedStatement s = c.prepareStatement("INSERT INTO plain (id, a) VALUES (?, ?)")) {
            for (int n = from; n < to; n++) {
                bind(s, n, n);
                s.addBatch();
            }
            Map<Integer, Integer> seen = new TreeMap<>();
            for (int count : s.executeBatch()) {
                seen.merge(count, 1, Integer::sum);
            }
            return seen.toString();
        } catch (BatchUpdateException refused) {
            throw refused;
        }
    }

    private void prepared(Connection c) throws Exception {
        try (PreparedStatement insert = c.prepareStatement("INSERT INTO changing (id, a) VALUES (?, ?)");
                PreparedStatement read = c.prepareStatement("SELECT * FROM changing WHERE id = ?")) {
            for (int n = 0; n < 9; n++) {
                int id = n;
                say.step("insert " + n, () -> { bind(insert, id, id); return insert.executeUpdate(); });
                say.step("read " + n, () -> { bind(read, id); return rows(read.executeQuery()); });
            }
            plain(c, "alter", "ALTER TABLE changing ADD COLUMN more int");
            say.step("insert after", () -> { bind(insert, 20, 1); return insert.executeUpdate(); });
            say.step("stale", () -> { bind(read, 1); return rows(read.executeQuery()); });
            plain(c, "retype", "ALTER TABLE changing ALTER COLUMN a TYPE bigint");
            say.step("insert retyped", () -> { bind(insert, 21, 1L << 40); return insert.executeUpdate(); });
            say.step("stale again", () -> { bind(read, 21); return rows(read.executeQuery()); });
        }
    }

    private void session(Connection c) throws Exception {
        plain(c, "zone", "SET TIME ZONE 'Asia/Tokyo'");
        run(c, "stamped", "INSERT INTO stamped (id) VALUES (?) RETURNING zone", 1);
        plain(c, "reset", "RESET TIME ZONE");
        plain(c, "role", "SET ROLE windrow_guest");
        run(c, "guest", "INSERT INTO stamped (id) VALUES (?) RETURNING who", 2);
        run(c, "denied", "INSERT INTO plain (id) VALUES (?)", 1000);
        plain(c, "reset role", "RESET ROLE");
        say.step("set schema", () -> { c.setSchema("other"); return c.getSchema(); });
        run(c, "other", "INSERT INTO plain (id, b) VALUES (?, ?) RETURNING *", 1, "other");
        plain(c, "reset path", "RESET search_path");
        run(c, "public", "INSERT INTO plain (id, b) VALUES (?, ?)", 1001, "public");
        try (Connection other = connect("&currentSchema=other&options=-c%20TimeZone=Asia/Tokyo")) {
            run(other, "startup", "INSERT INTO plain (id, b) VALUES (?, current_setting('TimeZone')) RETURNING *", 2);
            plain(c, "listen", "LISTEN bell");
            plain(other, "notify", "NOTIFY bell, 'ding'");
            PGNotification[] heard = c.unwrap(PGConnection.class).getNotifications(30_000);
            say.say("heard", "value", List.of(heard[0].getName(), heard[0].getParameter()));
            run(c, "lock", "SELECT pg_advisory_lock(1)");
            run(other, "locked", "SELECT pg_try_advisory_lock(1)");
            run(c, "unlock", "SELECT pg_advisory_unlock(1)");
        }
        plain(c, "temp", "CREATE TEMP TABLE passing (id int)");
        run(c, "into temp", "INSERT INTO passing VALUES (?)", 1);
        if (!mode.equals("simple")) {
            CopyManager copies = c.unwrap(PGConnection.class).getCopyAPI();
            say.step("copy", () -> copies.copyIn("COPY plain (id, b) FROM STDIN", new StringReader("1100\tcopied\n1101\tcopied\n")));
            say.step("copy bad", () -> copies.copyIn("COPY plain (id, b) FROM STDIN", new StringReader("1102\tcopied\n1100\tcopied\n")));
            say.step("copy out", () -> {
                StringWriter out = new StringWriter();
                long count = copies.copyOut("COPY (SELECT id, b FROM plain WHERE id >= 1100 ORDER BY id) TO STDOUT", out);
                return List.of(count, out.toString());
            });
        }
        plain(c, "empty", "");
        run(c, "large", "INSERT INTO plain (id, b) VALUES (?, ?)", 1200, "\u00e9".repeat(500_000));
        run(c, "large back", "SELECT length(b), md5(b) FROM plain WHERE id = 1200");
        say.step("query timeout", () -> {
            try (Statement s = c.createStatement()) {
                s.setQueryTimeout(1);
                return s.execute("SELECT pg_sleep(60)");
            }
        });
        plain(c, "statement timeout", "SET statement_timeout = 150");
        plain(c, "slow", "SELECT pg_sleep(60)");
        plain(c, "no timeout", "RESET statement_timeout");
        run(c, "goes on", "INSERT INTO plain (id) VALUES (?)", 1300);
        say.step("metadata", () -> rows(c.getMetaData().getPrimaryKeys(null, "public", "plain")));
        say.step("updatable", () -> {
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
                ResultSet rows = s.executeQuery("SELECT id, a FROM plain WHERE id IN (1001, 1300) ORDER BY id");
                rows.next();
                rows.updateInt("a", 77);
                rows.updateRow();
                rows.moveToInsertRow();
                rows.updateInt("id", 1301);
                rows.insertRow();
                return rows.getRow();
            }
        });
        say.step("valid", () -> c.isValid(30));
    }

    private void loop(Connection c) throws Exception {
        Map<String, Integer> seen = new TreeMap<>();
        for (int n = 2000; n < 2300; n++) {
            try (PreparedStatement insert = c.prepareStatement("INSERT INTO plain (id, a, b) VALUES (?, ?, ?)");
                    PreparedStatement update = c.prepareStatement("UPDATE plain SET a = a + 1 WHERE id = ?")) {
                bind(insert, n, n, "loop");
                seen.merge("insert " + insert.executeUpdate(), 1, Integer::sum);
                bind(update, n);
                seen.merge("update " + update.executeUpdate(), 1, Integer::sum);
            }
        }
        say.say("counts", "value", seen);
    }

    private int worker(int number) throws Exception {
        int won = 0;
        try (Connection own = connect("");
                PreparedStatement insert = own.prepareStatement("INSERT INTO plain (id, a) VALUES (?, ?)");
                PreparedStatement add = own.prepareStatement("UPDATE counter SET n = n + 1 WHERE name = ?");
                PreparedStatement claim = own.prepareStatement("INSERT INTO claimed (key, owner) VALUES (?, 0)");
                PreparedStatement delete = own.prepareStatement("DELETE FROM plain WHERE id = ?")) {
            for (int n = 0; n < 50; n++) {
                bind(insert, MANY + number * 100 + n, n);
                bind(add, "shared");
                bind(claim, n);
                bind(delete, MANY + number * 100 + n - 10);
                if (insert.executeUpdate() != 1 || add.executeUpdate() != 1 || delete.executeUpdate() != (n >= 10 ? 1 : 0)) {
                    throw new IllegalStateException("a count is wrong");
                }
                try {
                    won += claim.executeUpdate();
                } catch (PSQLException refused) {
                    if (!("Key (key)=(" + n + ") already exists.").equals(refused.getServerErrorMessage().getDetail())) {
                        throw refused;
                    }
                }
            }
        }
        return won;
    }

    private void together(Connection c) throws Exception {
        plain(c, "counter", "INSERT INTO counter VALUES ('shared', 0)");
        ExecutorService threads = Executors.newFixedThreadPool(32);
        List<Future<Integer>> results = new ArrayList<>();
        for (int number = 0; number < 32; number++) {
            int mine = number;
            results.add(threads.submit(() -> worker(mine)));
        }
        int won = 0;
        for (Future<Integer> result : results) {
            won += result.get();
        }
        threads.shutdown();
        say.say("won", "value", won);
        run(c, "sum", "SELECT * FROM counter");
        run(c, "rows", "SELECT count(*), sum(a) FROM plain");
    }

    private void play() throws Exception {
        try (Connection c = connect("")) {
            say.begin("schema");
            schema(c);
            if (mode.equals("crowd")) {
                say.begin("together");
                together(c);
                return;
            }
            say.begin("kinds");
            kinds(c);
            say.begin("writes");
            writes(c);
            say.begin("refused");
            refused(c);
            say.begin("transactions");
            transactions(c);
            say.begin("batches");
            batches(c);
            say.begin("prepared");
            prepared(c);
            say.begin("session");
            session(c);
        }
        // What the others have left behind on their connection keeps that from being joined.
        try (Connection c = connect("")) {
            say.begin("loop");
            loop(c);
        }
    }

    /** The program. */
    public static void main(String[] arguments) throws Exception {
        new Scenarios(arguments[0], arguments.length > 1 ? arguments[1] : "extended").play();
    }
}
