//! Block logs, epochs, crash spaces, and the lazy crash disk as a data structure.
