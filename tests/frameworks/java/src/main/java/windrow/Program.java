package windrow;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** Steps of a program: each prints one line of JSON and waits until the test has read it. */
final class Program {
    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));

    private Program() {}

    static void step(String name, Object value) throws IOException {
        System.out.println(json(Map.of(name, value)));
        System.out.flush();
        INPUT.readLine();
    }

    /** Describes the exception that an action throws: its classes, and the server's fields that are the same in every run. */
    static Object refused(Runnable action) {
        try {
            action.run();
            return "no error";
        } catch (RuntimeException error) {
            Map<String, Object> shown = new TreeMap<>();
            List<Object> classes = new ArrayList<>();
            for (Throwable at = error; at != null; at = at.getCause()) {
                classes.add(at.getClass().getSimpleName());
                if (at instanceof PSQLException refused) fields(refused, shown);
            }
            shown.put("classes", classes);
            return shown;
        }
    }

    private static void fields(PSQLException refused, Map<String, Object> shown) {
        shown.put("state", refused.getSQLState());
        ServerErrorMessage message = refused.getServerErrorMessage();
        if (message != null && message.getConstraint() != null) shown.put("constraint", message.getConstraint());
    }

    private static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(e -> json(e.getKey()) + ":" + json(e.getValue())).collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof List<?> list) return list.stream().map(Program::json).collect(Collectors.joining(",", "[", "]"));
        if (value instanceof String text) return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
        return String.valueOf(value);
    }
}
