//! Search over choices made lazily, with the coverage computed.
