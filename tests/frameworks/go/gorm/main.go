// GORM in its default configuration: Create, Save and Delete are a transaction each.
package main

import (
	"os"
	"sync"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"windrow/frameworks/program"
)

const (
	workers = 20
	rounds  = 5
)

type Customer struct {
	ID        uint
	Name      string    `gorm:"size:40;not null"`
	CreatedAt time.Time `gorm:"not null;default:now()"`
	Addresses []Address
}

type Address struct {
	ID         uint
	CustomerID uint   `gorm:"not null"`
	Street     string `gorm:"not null"`
	Country    string `gorm:"size:2;not null;default:NL"`
}

type Order struct {
	ID         uint
	CustomerID uint `gorm:"not null"`
	Customer   *Customer
	Number     *string `gorm:"size:20;not null;unique"`
	Note       *string
	CreatedAt  time.Time `gorm:"not null"`
	Lines      []Line
}

type Line struct {
	ID      uint
	OrderID uint   `gorm:"not null"`
	Product string `gorm:"not null"`
	Qty     *int   `gorm:"not null;default:1;check:order_lines_qty,qty > 0"`
}

func (Line) TableName() string { return "order_lines" }

func order(customer uint, number string, products ...string) *Order {
	made := &Order{CustomerID: customer, Number: &number}
	for _, product := range products {
		made.Lines = append(made.Lines, Line{Product: product})
	}
	five := 5
	made.Lines[len(made.Lines)-1].Qty = &five
	return made
}

func seen(db *gorm.DB, number string) any {
	var found []Order
	must(db.Preload("Lines", func(lines *gorm.DB) *gorm.DB { return lines.Order("product") }).Find(&found, "number = ?", number))
	if len(found) == 0 {
		return nil
	}
	lines := [][]any{}
	for _, line := range found[0].Lines {
		lines = append(lines, []any{line.Product, *line.Qty})
	}
	return map[string]any{"number": *found[0].Number, "note": found[0].Note, "lines": lines}
}

func all(db *gorm.DB, numbers ...string) []any {
	found := []any{}
	for _, number := range numbers {
		found = append(found, seen(db, number))
	}
	return found
}

func must(db *gorm.DB) { program.Must(db.Error) }

func addresses(db *gorm.DB, customer uint) any {
	var found []Address
	must(db.Order("street").Find(&found, "customer_id = ?", customer))
	shown := [][]string{}
	for _, address := range found {
		shown = append(shown, []string{address.Street, address.Country})
	}
	return shown
}

func update(db *gorm.DB, id uint) {
	var found Order
	must(db.First(&found, id))
	note := "changed"
	found.Note = &note
	must(db.Save(&found))
}

func remove(db *gorm.DB, number string) {
	var found Order
	must(db.Preload("Lines").First(&found, "number = ?", number))
	must(db.Select("Lines").Delete(&found))
}

func invalid(db *gorm.DB, customer uint) any {
	zero := 0
	long := "NNNNNNNNNNNNNNNNNNNNN"
	refused := order(customer, "A-3", "apple")
	refused.Lines[0].Qty = &zero
	return map[string]any{
		"null":   program.Describe(db.Create(&Order{CustomerID: customer}).Error),
		"long":   program.Describe(db.Create(&Order{CustomerID: customer, Number: &long}).Error),
		"check":  program.Describe(db.Create(refused).Error),
		"parent": program.Describe(db.Create(order(999999, "A-4", "apple")).Error),
		"left":   all(db, "A-3", "A-4"),
	}
}

func duplicate(db *gorm.DB, customer uint) any {
	err := db.Transaction(func(tx *gorm.DB) error {
		must(tx.Create(order(customer, "B-1", "apple")))
		return tx.Create(order(customer, "A-1", "pear")).Error
	})
	must(db.Create(order(customer, "B-2", "plum")))
	return map[string]any{"error": program.Describe(err), "seen": all(db, "B-1", "B-2")}
}

func rollback(db *gorm.DB, customer uint) any {
	tx := db.Begin()
	must(tx.Create(order(customer, "C-1", "apple")))
	must(tx.Rollback())
	return seen(db, "C-1")
}

func savepoint(db *gorm.DB, customer uint) any {
	var refused error
	program.Must(db.Transaction(func(tx *gorm.DB) error {
		must(tx.Create(order(customer, "D-1", "apple")))
		program.Must(tx.Transaction(func(inner *gorm.DB) error { return inner.Create(order(customer, "D-2", "pear")).Error }))
		refused = tx.Transaction(func(inner *gorm.DB) error { return inner.Create(order(customer, "A-1", "plum")).Error })
		return tx.Create(order(customer, "D-3", "fig")).Error
	}))
	return map[string]any{"error": program.Describe(refused), "seen": all(db, "D-1", "D-2", "D-3")}
}

func worker(db *gorm.DB, number int, made chan<- *Order) {
	for turn := range rounds {
		owner := &Customer{Name: program.Name("worker", number, turn), Addresses: []Address{{Street: "X"}, {Street: "Y"}, {Street: "Z"}}}
		must(db.Create(owner))
		one := order(owner.ID, program.Name("W", number, turn), "apple", "pear", "plum")
		must(db.Create(one))
		made <- one
	}
}

func crowd(db *gorm.DB) any {
	made := make(chan *Order, workers*rounds)
	var running sync.WaitGroup
	for number := range workers {
		running.Go(func() { worker(db, number, made) })
	}
	running.Wait()
	close(made)
	count, asRead := len(made), true
	for one := range made {
		var found Order
		must(db.First(&found, one.ID))
		asRead = asRead && *found.Number == *one.Number && found.CreatedAt.UnixMicro() == one.CreatedAt.UnixMicro()
	}
	return map[string]any{"orders": count, "as read": asRead}
}

func main() {
	db, err := gorm.Open(postgres.Open(os.Args[1]), &gorm.Config{Logger: logger.Discard})
	program.Must(err)
	program.Must(db.AutoMigrate(&Customer{}, &Address{}, &Order{}, &Line{}))
	program.Step("schema", nil)
	ada := &Customer{Name: "Ada"}
	must(db.Create(ada))
	program.Step("customer", map[string]any{"name": ada.Name, "created": !ada.CreatedAt.IsZero()})
	bob := &Customer{Name: "Bob", Addresses: []Address{{Street: "A"}, {Street: "B"}, {Street: "C", Country: "BE"}}}
	must(db.Create(bob))
	program.Step("addresses", addresses(db, bob.ID))
	first := order(ada.ID, "A-1", "apple", "pear", "plum")
	must(db.Create(first))
	program.Step("order", seen(db, "A-1"))
	update(db, first.ID)
	program.Step("update", seen(db, "A-1"))
	must(db.Create(order(ada.ID, "A-2", "apple", "pear")))
	remove(db, "A-2")
	program.Step("delete", seen(db, "A-2"))
	program.Step("invalid", invalid(db, ada.ID))
	program.Step("duplicate", duplicate(db, ada.ID))
	program.Step("rollback", rollback(db, ada.ID))
	// With late transactions no program goes on after a failed INSERT.
	if os.Getenv("SHOP_LATE") == "" {
		program.Step("savepoint", savepoint(db, ada.ID))
	}
	program.Step("workers", crowd(db))
}
