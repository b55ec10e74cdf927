//! Plans and executes cases, feeds the explorer, emits events, keeps run folders.
