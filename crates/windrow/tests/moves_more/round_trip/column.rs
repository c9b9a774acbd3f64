//! Columns, and what goes into them.

/// A column.
pub struct Column {
    /// Its type in PostgreSQL, MariaDB and SQLite.
    pub types: [&'static str; 3],
    /// Literals of values that every one of them has.
    pub plain: &'static [&'static str],
    /// Literals of values that another database may refuse.
    pub odd: &'static [&'static str],
    /// Makes the literal of another value that all have.
    pub random: Option<fn(&mut Rng) -> String>,
    /// What two values are held against each other by, where it is not what the database usually
    /// does it by.
    pub seen: Option<&'static str>,
}

/// A column of these types with these values.
pub fn column(types: [&'static str; 3], plain: &'static [&'static str]) -> Column {
    Column {
        types,
        plain,
        odd: &[],
        random: None,
        seen: None,
    }
}

impl Column {
    pub fn odd(self, odd: &'static [&'static str]) -> Self {
        Self { odd, ..self }
    }

    pub fn random(self, random: fn(&mut Rng) -> String) -> Self {
        Self {
            random: Some(random),
            ..self
        }
    }

    pub fn seen(self, seen: &'static str) -> Self {
        Self {
            seen: Some(seen),
            ..self
        }
    }
}

/// Numbers that are the same for the same seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        // SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.bits() % most
    }

    /// One of 8, 16, 32 or 64 bits, of either sign, small ones as often as large ones.
    pub fn int(&mut self, bits: u32) -> i64 {
        let all = i64::from_ne_bytes(self.bits().to_ne_bytes());
        all >> (u64::from(64 - bits) + self.below(u64::from(bits)))
    }

    pub fn double(&mut self) -> f64 {
        loop {
            let double = f64::from_bits(self.bits());
            if double.is_normal() {
                return double;
            }
        }
    }

    pub fn float(&mut self) -> f32 {
        loop {
            let float = f32::from_bits(u32::try_from(self.bits() >> 32).unwrap());
            if float.is_normal() {
                return float;
            }
        }
    }

    /// Digits with a point, one more before it than `whole`.
    pub fn decimal(&mut self, whole: u64, fraction: u64) -> String {
        let mut digits = |most: u64| -> String {
            let many = 1 + self.below(most);
            (0..many)
                .map(|_| char::from(b'0' + u8::try_from(self.below(10)).unwrap()))
                .collect()
        };
        let (whole, fraction) = (digits(whole), digits(fraction));
        let sign = if self.below(2) == 0 { "-" } else { "" };
        format!("{sign}1{whole}.{fraction}")
    }

    pub fn bytes(&mut self, most: u64) -> Vec<u8> {
        let many = self.below(most + 1);
        (0..many).map(|_| self.bits().to_ne_bytes()[0]).collect()
    }

    pub fn hex(&mut self, most: u64) -> String {
        self.bytes(most)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// A text of up to so many characters, of which none is at home everywhere; it does not end
    /// with a blank.
    pub fn text(&mut self, most: u64) -> String {
        const CHARS: [char; 24] = [
            'a',
            'Z',
            '0',
            '7',
            ' ',
            '"',
            '\'',
            '\\',
            ',',
            ';',
            '\n',
            '\r',
            '\t',
            '|',
            '{',
            '}',
            '[',
            '%',
            '=',
            '\u{e9}',
            '\u{df}',
            '\u{6570}',
            '\u{1f600}',
            '\u{1}',
        ];
        let many = self.below(most);
        let mut text: String = (0..many)
            .map(|_| CHARS[usize::try_from(self.below(CHARS.len() as u64)).unwrap()])
            .collect();
        text.push('.');
        text
    }

    /// A moment between 1970 and 2037, without a zone.
    pub fn moment(&mut self) -> String {
        format!("{} {}", self.date(), self.time())
    }

    pub fn date(&mut self) -> String {
        let (year, month, day) = (
            1971 + self.below(66),
            1 + self.below(12),
            1 + self.below(28),
        );
        format!("{year}-{month:02}-{day:02}")
    }

    pub fn time(&mut self) -> String {
        let (hours, minutes, seconds) = (self.below(24), self.below(60), self.below(60));
        format!(
            "{hours:02}:{minutes:02}:{seconds:02}.{:06}",
            self.below(1_000_000)
        )
    }

    pub fn uuid(&mut self) -> String {
        // Of version 4: MariaDB takes no others that look random.
        let (high, low) = (self.bits() & !0xf000 | 0x4000, self.bits() >> 2 | 1 << 63);
        let hex = format!("{high:016x}{low:016x}");
        let (a, b, c, d, e) = (
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        );
        format!("{a}-{b}-{c}-{d}-{e}")
    }

    /// An object or an array of JSON, without blanks.
    pub fn json(&mut self) -> String {
        let text = serde_json::Value::from(self.text(8)).to_string();
        match self.below(3) {
            0 => format!("[{},{text},null,true]", self.int(64)),
            1 => format!("{{\"a\":{text},\"b\":[{}]}}", self.int(32)),
            _ => format!("[[{text}],{{\"a\":{{}}}}]"),
        }
    }
}

/// A text in quotes, as the standard has it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
