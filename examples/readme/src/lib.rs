//! Compiles and runs the examples of the repository's README.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
