//! Tests of parts that come in any order.
