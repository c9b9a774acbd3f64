//! Nothing but a test: what `windrow-sql` reads in a statement is held against PostgreSQL's own
//! parser, which takes minutes to build. `./test all` runs it, and `./test grammar` alone.
