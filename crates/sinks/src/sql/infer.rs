//! What type a column must have to hold the values seen.
