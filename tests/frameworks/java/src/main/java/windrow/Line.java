package windrow;

import jakarta.persistence.CheckConstraint;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.Table;
import org.hibernate.annotations.ColumnDefault;

@Entity
@Table(name = "order_lines", check = @CheckConstraint(name = "order_lines_qty", constraint = "qty > 0"))
public class Line {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    @ManyToOne(fetch = FetchType.LAZY, optional = false) @JoinColumn(name = "order_id") Order order;
    @Column(nullable = false) String product;
    @ColumnDefault("1") int qty = 1;

    protected Line() {}

    Line(Order order, String product) {
        this.order = order;
        this.product = product;
    }
}
