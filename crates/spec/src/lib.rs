//! What crosses a process or a disk: scenarios, plans, control messages, events, verdicts, certificates, tokens.
