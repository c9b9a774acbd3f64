//! The rows that are answered before they are stored: see [`super::Preview`].

/// The origin of a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewValue {
    /// The parameter of the INSERT at this position, in the format of the call.
    Given(usize),
    /// The computed column at this position, in binary.
    Computed(usize),
}

/// A foreign key of one integer or `uuid` column. The plan of a table with any other foreign key
/// has a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewReference {
    /// The position of the column among the parameters of `write`.
    pub value: usize,
    /// The OID of the table that is referred to.
    pub table: u32,
    /// The number of the column that is referred to, in that table.
    pub column: i16,
}

/// A reason why the writes of a transaction are sent to the server before COMMIT instead of being
/// kept in the gateway, with advice for the operator.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    /// The reason as a short phrase, by which transactions are counted.
    pub phrase: &'static str,
    /// Advice for the operator; never empty.
    pub advice: &'static str,
}

/// The advice for keys that only the database can check.
const ONLY_THE_SERVER: &str = "SET windrow.transactions = 'late' for the session, role or database, if errors may come with COMMIT; autocommit, if the transaction is this one statement: the page of frameworks says at which price";

impl Doubt {
    /// The table has triggers or rules.
    pub const TRIGGER: Self = Self {
        phrase: "in a transaction: a table with triggers",
        advice: "a default, a generated column or the program itself in place of the trigger; nothing else: what a trigger does is only known once it has run",
    };
    /// The table has row security.
    pub const POLICY: Self = Self {
        phrase: "in a transaction: row security",
        advice: "a role with BYPASSRLS, or the table's owner without FORCE ROW LEVEL SECURITY",
    };
    /// The table is partitioned, a partition, or not an ordinary table.
    pub const KIND: Self = Self {
        phrase: "in a transaction: a partitioned table or a view",
        advice: "nothing: only INSERTs into ordinary tables are kept; in autocommit they are joined",
    };
    /// The table has a check or foreign key that cannot be evaluated beforehand.
    pub const CONDITION: Self = Self {
        phrase: "in a transaction: a check that is not computed beforehand",
        advice: "a check over the columns of its own row, with functions that are built in",
    };
    /// The table is compared with the time of the write.
    pub const CLOCK: Self = Self {
        phrase: "in a transaction: a time that something looks at",
        advice: "a column that is stamped by the program or by its own default, and compared with nothing",
    };
    /// The sessions have another isolation level by default.
    pub const ISOLATION: Self = Self {
        phrase: "in a transaction: SERIALIZABLE, REPEATABLE READ or other modes",
        advice: "READ COMMITTED, if the application needs no more (Django OPTIONS isolation_level, SQLAlchemy isolation_level, Spring @Transactional(isolation), TypeORM isolationLevel)",
    };
    /// The INSERT has a form that cannot be kept.
    pub const FORM: Self = Self {
        phrase: "in a transaction: an INSERT of a form that is not computed beforehand",
        advice: "plain values, RETURNING of plain columns, ON CONFLICT without effect: see the page of the PostgreSQL frontend",
    };
    /// The table has an index of which it is unknown if it accepts a row.
    pub const INDEX: Self = Self {
        phrase: "in a transaction: an index that is partial or over an expression",
        advice: ONLY_THE_SERVER,
    };
    /// The table has a unique key that another row may have.
    pub const GIVEN_KEY: Self = Self {
        phrase: "in a transaction: a unique key that is not generated",
        advice: ONLY_THE_SERVER,
    };
    /// The table has a foreign key that is not looked up among the rows of the transaction.
    pub const REFERENCE: Self = Self {
        phrase: "in a transaction: a foreign key that is not one number or uuid",
        advice: ONLY_THE_SERVER,
    };
    /// A foreign key refers to a row that the same transaction has not inserted.
    pub const FOREIGN_KEY: Self = Self {
        phrase: "in a transaction: a foreign key to a row of another transaction",
        advice: ONLY_THE_SERVER,
    };

    /// All doubts about INSERTs into a table.
    pub const ALL: [&'static Self; 11] = [
        &Self::TRIGGER,
        &Self::POLICY,
        &Self::KIND,
        &Self::CONDITION,
        &Self::CLOCK,
        &Self::ISOLATION,
        &Self::FORM,
        &Self::INDEX,
        &Self::GIVEN_KEY,
        &Self::REFERENCE,
        &Self::FOREIGN_KEY,
    ];
}
