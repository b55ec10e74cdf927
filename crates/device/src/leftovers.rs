//! What a killed harness left behind.
