package windrow;

import java.math.BigDecimal;
import java.sql.Array;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** Turns what the driver answers into lines of JSON, the same in every run. */
final class Transcript {
    /** Something that may be refused. */
    interface Action {
        Object run() throws Exception;
    }

    private String scenario = "";

    void begin(String name) {
        scenario = name;
    }

    void say(String step, String what, Object value) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("scenario", scenario);
        line.put("step", step);
        line.put(what, value);
        System.out.println(json(line));
    }

    void step(String name, Action action) throws Exception {
        try {
            say(name, "value", action.run());
        } catch (SQLException refused) {
            say(name, "error", fields(refused));
        }
    }

    static Object fields(SQLException refused) {
        List<Object> all = new ArrayList<>();
        for (SQLException one = refused; one != null; one = one.getNextException()) {
            Map<String, Object> told = new LinkedHashMap<>();
            told.put("class", one.getClass().getSimpleName());
            told.put("state", one.getSQLState());
            told.put("text", one.getMessage());
            if (one instanceof java.sql.BatchUpdateException batch) {
                told.put("counts", batch.getLargeUpdateCounts());
            }
            if (one instanceof PSQLException ours && ours.getServerErrorMessage() != null) {
                told.put("server", server(ours.getServerErrorMessage()));
            }
            all.add(told);
        }
        return all;
    }

    static Object warnings(SQLWarning first) {
        List<Object> all = new ArrayList<>();
        for (SQLWarning one = first; one != null; one = one.getNextWarning()) {
            all.add(List.of(one.getMessage(), one.getSQLState()));
        }
        return all;
    }

    private static Object server(ServerErrorMessage m) {
        return Arrays.asList(m.getSeverity(), m.getSQLState(), m.getMessage(), m.getDetail(), m.getHint(), m.getPosition(), m.getWhere(), m.getSchema(),
                m.getTable(), m.getColumn(), m.getDatatype(), m.getConstraint(), m.getFile(), m.getLine(), m.getRoutine());
    }

    static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long || value instanceof Short) {
            return String.valueOf(value);
        }
        if (value instanceof Map<?, ?> map) {
            StringBuilder text = new StringBuilder("{");
            map.forEach((k, v) -> text.append(text.length() > 1 ? "," : "").append(json(k)).append(":").append(json(v)));
            return text.append("}").toString();
        }
        if (value instanceof Iterable<?> list) {
            StringBuilder text = new StringBuilder("[");
            list.forEach(v -> text.append(text.length() > 1 ? "," : "").append(json(v)));
            return text.append("]").toString();
        }
        if (value instanceof Object[] array) {
            return json(Arrays.asList(array));
        }
        if (value instanceof int[] array) {
            return Arrays.toString(array);
        }
        if (value instanceof long[] array) {
            return Arrays.toString(array);
        }
        if (value instanceof byte[] bytes) {
            return quoted("bytes:" + Arrays.hashCode(bytes) + ":" + bytes.length);
        }
        if (value instanceof String text) {
            return quoted(text);
        }
        if (value instanceof BigDecimal number) {
            return quoted("decimal:" + number);
        }
        if (value instanceof Array array) {
            return quoted("array:" + array);
        }
        return quoted(value.getClass().getSimpleName() + ":" + value);
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}
