//! A section of the configuration file: its type and its keys, written once.

/// A key of the configuration file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConfigKey {
    /// The key's name in its section.
    pub(super) name: &'static str,
    /// A short description for the page.
    pub(super) about: &'static str,
    /// True if a change takes effect when the file is read again, without a restart.
    pub(super) is_reloaded: bool,
    /// True if the value may hold a secret, so that no error shows it.
    pub(super) is_secret: bool,
    /// True if it is a table of the file, whose keys are listed separately.
    pub(super) is_section: bool,
}

impl ConfigKey {
    pub(super) const fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            is_reloaded: false,
            is_secret: false,
            is_section: false,
        }
    }

    pub(super) const fn reload(mut self) -> Self {
        self.is_reloaded = true;
        self
    }

    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    pub(super) const fn section(mut self) -> Self {
        self.is_section = true;
        self
    }
}

/// Defines the type of a section, and its keys: `name: type { "a few words", flags },`. A key needs
/// a restart and may be shown unless its flags are `reload` or `secret`; `section` marks a table.
macro_rules! section {
    ($(#[$outer:meta])* $type:ident {
        $($(#[$inner:meta])* $name:ident: $of:ty { $about:literal $(, $flag:ident)* },)+
    }) => {
        $(#[$outer])*
        pub struct $type {
            $(#[doc = $about] $(#[$inner])* pub $name: $of,)+
        }

        impl $type {
            pub(super) const KEYS: &'static [crate::settings::section::ConfigKey] = &[
                $(crate::settings::section::ConfigKey::new(stringify!($name), $about)$(.$flag())*,)+
            ];
        }
    };
}
pub(super) use section;
