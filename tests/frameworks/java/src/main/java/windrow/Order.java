package windrow;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.hibernate.annotations.CreationTimestamp;

@Entity
@Table(name = "orders", uniqueConstraints = @UniqueConstraint(name = "orders_number", columnNames = "number"))
public class Order {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    @ManyToOne(fetch = FetchType.LAZY, optional = false) @JoinColumn(name = "customer_id") Customer customer;
    // NOT NULL in the table alone: with `nullable = false` Hibernate itself refuses it.
    @Column(columnDefinition = "varchar(20) NOT NULL") String number;
    String note;
    @CreationTimestamp @Column(name = "created_at", nullable = false) Instant createdAt;
    @OneToMany(mappedBy = "order", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("product") List<Line> lines = new ArrayList<>();

    protected Order() {}

    Order(Customer customer, String number, String... products) {
        this.customer = customer;
        this.number = number;
        for (String product : products) lines.add(new Line(this, product));
        lines.get(lines.size() - 1).qty = 5;
    }
}
