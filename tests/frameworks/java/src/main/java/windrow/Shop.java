package windrow;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate in its default configuration, with keys by IDENTITY (`identity`) or from sequences (`sequence`). Each unit of work is a transaction. */
public final class Shop {
    private static final int WORKERS = 20;
    private static final int ROUNDS = 5;
    private static final String NONE = "none";

    private final SessionFactory factory;

    private Shop(SessionFactory factory) {
        this.factory = factory;
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("org.hibernate").setLevel(Level.OFF);
        String url = arguments[0].replaceFirst("postgres://([^@]*)@(.*)", "jdbc:postgresql://$2?user=$1");
        Configuration configuration = new Configuration()
            .addAnnotatedClasses(Customer.class, Address.class, Order.class, Line.class)
            .setProperty("hibernate.connection.url", url)
            .setProperty("hibernate.connection.pool_size", String.valueOf(WORKERS + 1))
            .setProperty("hibernate.hbm2ddl.auto", "create");
        if (arguments[1].equals("sequence")) configuration.addResource("sequence.xml");
        try (SessionFactory factory = configuration.buildSessionFactory()) {
            new Shop(factory).play();
        }
    }

    private void play() throws Exception {
        Program.step("schema", NONE);
        Customer ada = save(new Customer("Ada"));
        Program.step("customer", Map.of("created", ada.createdAt != null));
        Customer bob = save(new Customer("Bob", "A", "B", "C"));
        Program.step("addresses", addresses(bob));
        Order first = save(new Order(ada, "A-1", "apple", "pear", "plum"));
        Program.step("order", seen("A-1"));
        factory.inTransaction(session -> session.find(Order.class, first.id).note = "changed");
        Program.step("update", seen("A-1"));
        save(new Order(ada, "A-2", "apple", "pear"));
        factory.inTransaction(session -> session.remove(find(session, "A-2")));
        Program.step("delete", seen("A-2"));
        Program.step("invalid", invalid(ada));
        Program.step("duplicate", duplicate(ada));
        Program.step("rollback", rollback(ada));
        Program.step("workers", workers());
    }

    private <T> T save(T entity) {
        factory.inTransaction(session -> session.persist(entity));
        return entity;
    }

    private static Order find(Session session, String number) {
        return session.createQuery("from Order where number = :number", Order.class).setParameter("number", number).uniqueResult();
    }

    private Object seen(String number) {
        return factory.fromTransaction(session -> {
            Order found = find(session, number);
            if (found == null) return NONE;
            List<Object> lines = new ArrayList<>();
            for (Line line : found.lines) lines.add(List.of(line.product, line.qty));
            return new TreeMap<>(Map.of("number", found.number, "note", String.valueOf(found.note), "lines", lines));
        });
    }

    private Object addresses(Customer customer) {
        return factory.fromTransaction(session ->
            session.createQuery("select street || ' ' || country from Address where customer.id = :id order by street", String.class)
                .setParameter("id", customer.id)
                .list());
    }

    private Object invalid(Customer customer) {
        Order check = new Order(customer, "A-3", "apple");
        check.lines.get(0).qty = 0;
        Customer stranger = new Customer("stranger");
        stranger.id = 999999L;
        Map<String, Object> shown = new TreeMap<>();
        shown.put("null", Program.refused(() -> save(new Order(customer, null, "apple"))));
        shown.put("long", Program.refused(() -> save(new Order(customer, "N".repeat(21), "apple"))));
        shown.put("check", Program.refused(() -> save(check)));
        shown.put("parent", Program.refused(() -> factory.inTransaction(session ->
            session.persist(new Order(session.getReference(Customer.class, stranger.id), "A-4", "apple")))));
        shown.put("left", List.of(seen("A-3"), seen("A-4")));
        return shown;
    }

    private Object duplicate(Customer customer) {
        Object error = Program.refused(() -> factory.inTransaction(session -> {
            session.persist(new Order(customer, "B-1", "apple"));
            session.persist(new Order(customer, "A-1", "pear"));
        }));
        save(new Order(customer, "B-2", "plum"));
        return new TreeMap<>(Map.of("error", error, "first", seen("B-1"), "next", seen("B-2")));
    }

    private Object rollback(Customer customer) {
        try (Session session = factory.openSession()) {
            session.beginTransaction();
            session.persist(new Order(customer, "C-1", "apple"));
            session.flush();
            session.getTransaction().rollback();
        }
        return seen("C-1");
    }

    private List<Order> worker(int number) {
        List<Order> made = new ArrayList<>();
        for (int turn = 0; turn < ROUNDS; turn++) {
            Customer owner = save(new Customer("worker " + number + " " + turn, "X", "Y", "Z"));
            made.add(save(new Order(owner, "W-" + number + "-" + turn, "apple", "pear", "plum")));
        }
        return made;
    }

    private Object workers() throws Exception {
        List<Callable<List<Order>>> works = new ArrayList<>();
        for (int worker = 0; worker < WORKERS; worker++) {
            int number = worker;
            works.add(() -> worker(number));
        }
        ExecutorService pool = Executors.newFixedThreadPool(WORKERS);
        List<Order> made = new ArrayList<>();
        for (Future<List<Order>> part : pool.invokeAll(works)) made.addAll(part.get());
        pool.shutdown();
        boolean asRead = true;
        for (Order one : made) {
            asRead &= factory.fromTransaction(session -> session.find(Order.class, one.id).number.equals(one.number));
        }
        return new TreeMap<>(Map.of("orders", made.size(), "as read", asRead));
    }
}
