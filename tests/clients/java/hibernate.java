import jakarta.persistence.*;
import java.util.*;
import java.util.concurrent.*;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;

public class Orders {
    @Entity(name = "orders")
    public static class Order {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        String item;

        protected Order() {}
        Order(String item) { this.item = item; }
    }

    public static void main(String[] arguments) throws Exception {
        java.util.logging.Logger.getLogger("org.hibernate").setLevel(java.util.logging.Level.OFF);
        SessionFactory factory = new Configuration()
            .addAnnotatedClass(Order.class)
            .setProperty("hibernate.connection.url", "jdbc:postgresql://127.0.0.1:6432/shop?user=app")
            .setProperty("hibernate.connection.autocommit", "true")
            .setProperty("hibernate.connection.pool_size", "16")
            .buildSessionFactory();
        Callable<List<Long>> worker = () -> {
            List<Long> ids = new ArrayList<>();
            try (var session = factory.openStatelessSession()) {
                for (int n = 0; n < 25; n++) ids.add((Long) session.insert(new Order("fork " + n)));
            }
            return ids;
        };
        ExecutorService pool = Executors.newFixedThreadPool(16);
        Set<Long> ids = new HashSet<>();
        for (Future<List<Long>> part : pool.invokeAll(Collections.nCopies(16, worker))) ids.addAll(part.get());
        pool.shutdown();
        System.out.println(ids.size() + " rows, each with an id of its own");
        try (var session = factory.openStatelessSession()) {
            session.insert(new Order(""));
        } catch (ConstraintViolationException error) {
            System.out.println(error.getSQLState() + " " + error.getConstraintName());
        }
        factory.close();
    }
}
