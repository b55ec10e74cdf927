//! Folds events into a terminal table, stories and the certificate.
