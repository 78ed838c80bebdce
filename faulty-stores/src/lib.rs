//! Planted mistakes that the conformance suite must catch, each by name
