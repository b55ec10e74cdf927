//! Tree snapshots, differences, and the predicates of the crash model.
