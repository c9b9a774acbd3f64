use super::*;

#[test]
fn triggers_that_only_give_values_are_proven() {
    for (body, sets) in [
        ("SET NEW.updated_at = NOW()", &["updated_at"][..]),
        (
            "set new.`a b` = lower(trim(new.v)), NEW.n = new.n + 1;",
            &["a b", "n"],
        ),
        (
            "BEGIN /* why */ IF NEW.n < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no -- n', MYSQL_ERRNO = 1; \
             ELSEIF OLD.n <> NEW.n THEN SET NEW.v = CASE WHEN NEW.n IS NULL THEN 'x' ELSE _utf8mb4'y' END; # so\n \
             ELSE SET NEW.at = current_timestamp; END IF; END",
            &["v", "at"],
        ),
        (
            "SET NEW.at = NOW() + INTERVAL 1 DAY, NEW.h = UNHEX(REPLACE(UUID(), '-', ''))",
            &["at", "h"],
        ),
        ("BEGIN END", &[]),
        (
            "SET NEW.v = CONVERT(NEW.v USING latin1) COLLATE latin1_bin",
            &["v"],
        ),
    ] {
        assert_eq!(
            trigger(body, "STRICT_TRANS_TABLES").unwrap(),
            sets,
            "{body}"
        );
    }
}

#[test]
fn all_else_in_a_trigger_is_not_proven() {
    for body in [
        "SET @x = NEW.id",
        "SET NEW.id = @x",
        "SET NEW.id = @@server_id",
        "SET NEW.id = (@x := 1)",
        "SET sql_mode = ''",
        "SET SESSION autocommit = 0",
        "INSERT INTO log VALUES (NEW.id)",
        "BEGIN SET NEW.a = 1; INSERT INTO log VALUES (1); END",
        "CALL p(NEW.id)",
        "SET NEW.a = f(NEW.a)",
        "SET NEW.a = d.f(NEW.a)",
        "SET NEW.a = `lower`(NEW.a)",
        "SET NEW.a = lower (NEW.a)",
        "SET NEW.a = LAST_INSERT_ID(5)",
        "SET NEW.a = GET_LOCK('x', 1)",
        "SET NEW.a = RAND(5)",
        "SET NEW.a = SLEEP(1)",
        "SET NEW.a = (SELECT MAX(a) FROM t)",
        "SET NEW.a = EXISTS (TABLE t)",
        "SET NEW.a = v",
        "SET NEW.a = OLD",
        "SET NEW.a = 1 /*! + @x */",
        "SET NEW.a = 'x",
        "SET NEW.a = ",
        "IF NEW.a THEN SET NEW.b = 1; END",
        "BEGIN DECLARE v INT; SET v = 1; END",
        "label: BEGIN END",
        "SET NEW.a = 1; SET @x = 2",
        "DO RELEASE_LOCK('x')",
        "",
    ] {
        assert!(trigger(body, "").is_err(), "{body}");
    }
    assert!(trigger("SET NEW.a = \"b\"", "ANSI_QUOTES").is_err());
}

#[test]
fn definitions_of_known_functions_are_proven() {
    let plain = "CREATE TABLE `t@1` (
  `id` int(11) NOT NULL AUTO_INCREMENT COMMENT 'it''s @x (f(1))',
  `u` varchar(40) DEFAULT uuid(),
  `n` decimal(5,2) DEFAULT (rand() * 10),
  `g` varchar(20) GENERATED ALWAYS AS (lcase(`u`)) VIRTUAL,
  `s` int(11) NOT NULL DEFAULT nextval(`d`.`sq`),
  `e` enum('a','b') DEFAULT 'a',
  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),
  `at` datetime(6) DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6),
  PRIMARY KEY (`id`),
  UNIQUE KEY `lower` (`u`(5)),
  KEY `x` ((lower(`u`))),
  CONSTRAINT `fk` FOREIGN KEY (`n`) REFERENCES `d`.`p` (`id`) ON DELETE CASCADE,
  CONSTRAINT `few` CHECK (`n` in (1,2) or `n` between 1 and 3)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
/*!50100 PARTITION BY RANGE (`id`)
(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB) */";
    assert_eq!(definition(plain), Ok(()));
    for part in [
        "DEFAULT @`x`",
        "GENERATED ALWAYS AS (@x:=3)",
        "DEFAULT connection_id()",
        "DEFAULT (udf(1))",
        "DEFAULT (`udf`(`b`))",
        "DEFAULT (rand(3))",
        "DEFAULT lastval(`sq`)",
        "DEFAULT 'x",
    ] {
        let table = format!("CREATE TABLE `t` (`a` int(11) {part})");
        assert!(definition(&table).is_err(), "{part}");
    }
}

#[test]
fn a_privilege_counts_where_it_was_given() {
    let may = |grant: &str| may_see_triggers(&[grant.to_owned()], "my_db", "t");
    for grant in [
        "GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION",
        "GRANT SELECT, TRIGGER ON `my_db`.* TO `u`@`%`",
        "GRANT TRIGGER ON `my\\_d%`.* TO `u`@`%`",
        "GRANT TRIGGER ON `my_db`.`t` TO `u`@`%`",
    ] {
        assert!(may(grant), "{grant}");
    }
    for grant in [
        "GRANT USAGE ON *.* TO `u`@`%`",
        "GRANT SELECT (`TRIGGER`), INSERT ON `my_db`.`t` TO `u`@`%`",
        "GRANT TRIGGER ON `other`.* TO `u`@`%`",
        "GRANT TRIGGER ON `my_db`.`t2` TO `u`@`%`",
        "GRANT `TRIGGER` TO `u`@`%`",
    ] {
        assert!(!may(grant), "{grant}");
    }
}
