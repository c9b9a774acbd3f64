package windrow;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.hibernate.annotations.ColumnDefault;
import org.hibernate.annotations.Generated;

@Entity
@Table(name = "customers")
public class Customer {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    @Column(length = 40, nullable = false) String name;
    @Generated @ColumnDefault("now()") @Column(name = "created_at", nullable = false) Instant createdAt;
    @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL) List<Address> addresses = new ArrayList<>();

    protected Customer() {}

    Customer(String name, String... streets) {
        this.name = name;
        for (String street : streets) addresses.add(new Address(this, street));
    }
}
