//! In which statements a batch goes out.
