//! Random tables and values.
