//! The seccomp filter that stops a program only at calls of interest.
//!
//! It is put together here and not by a crate, because those that were looked at kill a program
//! that uses another call convention than the harness; here that is a warning.

use nix::libc;

use super::arch;
use super::call::{Call, Condition};

/// Data of the stop at a call in another convention, which has other numbers.
pub(crate) const FOREIGN: u16 = 1;

// Offsets in `struct seccomp_data`: number, architecture, instruction pointer, six arguments. The
// halves of an argument that are read here are the lower ones, on little-endian machines.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// The program for the kernel's filter machine.
#[derive(Debug, Default)]
struct Assembler(Vec<libc::sock_filter>);

impl Assembler {
    fn push(&mut self, code: u32, k: u32, if_true: u8, if_false: u8) {
        self.0.push(libc::sock_filter {
            code: u16::try_from(code).expect("all codes have 16 bits"),
            jt: if_true,
            jf: if_false,
            k,
        });
    }

    fn load(&mut self, offset: u32) {
        self.push(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    }

    fn load_argument(&mut self, position: usize) {
        let position = u32::try_from(position).expect("there are six");
        self.load(ARGUMENTS_AT + 8 * position);
    }

    /// Skips `count` instructions unless the loaded value is this one.
    fn skip_unless_equal(&mut self, value: u32, count: u8) {
        self.push(libc::BPF_JMP | libc::BPF_JEQ, value, 0, count);
    }

    /// Skips `count` instructions unless the loaded value has one of the bits.
    fn skip_unless_any(&mut self, bits: u32, count: u8) {
        self.push(libc::BPF_JMP | libc::BPF_JSET, bits, 0, count);
    }

    fn stop(&mut self, data: u16) {
        let action = libc::SECCOMP_RET_TRACE | u32::from(data);
        self.push(libc::BPF_RET, action, 0, 0);
    }

    fn allow(&mut self) {
        self.push(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0, 0);
    }

    /// Decides about one call, whose number is loaded. Falls through for any other number.
    fn call(&mut self, number: u32, condition: Condition) {
        match condition {
            Condition::Always => {
                self.skip_unless_equal(number, 1);
                self.stop(0);
            }
            Condition::AnyBit(position, bits) => {
                self.skip_unless_equal(number, 4);
                self.load_argument(position);
                self.skip_unless_any(bits, 1);
                self.stop(0);
                self.allow();
            }
            Condition::OneOf(position, values) => {
                let checks = u8::try_from(2 * values.len()).expect("there are few");
                self.skip_unless_equal(number, checks + 2);
                self.load_argument(position);
                for value in values {
                    self.skip_unless_equal(*value, 1);
                    self.stop(0);
                }
                self.allow();
            }
            Condition::SharedMapping => {
                let (protection, flags) = (2, 3);
                self.skip_unless_equal(number, 8);
                self.load_argument(protection);
                self.skip_unless_any(libc::PROT_WRITE.cast_unsigned(), 5);
                self.load_argument(flags);
                // MAP_PRIVATE lacks the bit; MAP_SHARED and MAP_SHARED_VALIDATE have it.
                self.skip_unless_any(libc::MAP_SHARED.cast_unsigned(), 3);
                self.skip_unless_any(libc::MAP_ANONYMOUS.cast_unsigned(), 1);
                self.allow();
                self.stop(0);
                self.allow();
            }
        }
    }
}

/// The filter for this machine.
pub(crate) fn filter() -> Vec<libc::sock_filter> {
    let mut program = Assembler::default();
    program.load(ARCHITECTURE_AT);
    program.push(libc::BPF_JMP | libc::BPF_JEQ, arch::AUDIT_ARCH, 1, 0);
    program.stop(FOREIGN);
    program.load(NUMBER_AT);
    if let Some(from) = arch::FOREIGN_NUMBERS_FROM {
        program.push(libc::BPF_JMP | libc::BPF_JGE, from, 0, 1);
        program.stop(FOREIGN);
    }
    for (number, call) in arch::CALLS {
        let number = u32::try_from(*number).expect("numbers of calls are small");
        program.call(number, call.condition());
    }
    program.allow();
    program.0
}

/// The call with this number.
pub(crate) fn call_of(number: u64) -> Option<Call> {
    let number = i64::try_from(number).ok()?;
    let found = arch::CALLS.iter().find(|(one, _)| *one == number);
    found.map(|(_, call)| *call)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use nix::libc;

    use super::{FOREIGN, filter};
    use crate::trace::arch::{AUDIT_ARCH, CALLS};

    const STOP: u32 = libc::SECCOMP_RET_TRACE;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

    /// What the filter says to a call, by an interpreter of the instructions it uses.
    fn verdict(architecture: u32, number: i64, arguments: [u32; 6]) -> u32 {
        let program = filter();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let one = program[at];
            at += 1;
            let condition = match u32::from(one.code) {
                code if code == libc::BPF_RET => return one.k,
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    loaded = match one.k {
                        0 => u32::try_from(number).expect("numbers are small"),
                        4 => architecture,
                        offset => arguments[(offset as usize - 16) / 8],
                    };
                    continue;
                }
                code if code == libc::BPF_JMP | libc::BPF_JEQ => loaded == one.k,
                code if code == libc::BPF_JMP | libc::BPF_JGE => loaded >= one.k,
                code if code == libc::BPF_JMP | libc::BPF_JSET => loaded & one.k != 0,
                code => panic!("no such instruction: {code}"),
            };
            at += usize::from(if condition { one.jt } else { one.jf });
        }
    }

    fn native(number: i64, arguments: [u32; 6]) -> u32 {
        verdict(AUDIT_ARCH, number, arguments)
    }

    fn opens(flags: i32) -> u32 {
        native(libc::SYS_openat, [0, 0, flags.cast_unsigned(), 0, 0, 0])
    }

    fn maps(protection: i32, flags: i32) -> u32 {
        let (protection, flags) = (protection.cast_unsigned(), flags.cast_unsigned());
        native(libc::SYS_mmap, [0, 0, protection, flags, 0, 0])
    }

    #[test]
    fn only_opens_that_change_something_stop() {
        assert_eq!(opens(libc::O_RDONLY | libc::O_CLOEXEC), ALLOW);
        assert_eq!(opens(libc::O_RDWR | libc::O_DIRECTORY), ALLOW);
        assert_eq!(opens(libc::O_WRONLY | libc::O_CREAT), STOP);
        assert_eq!(opens(libc::O_WRONLY | libc::O_TRUNC), STOP);
        assert_eq!(opens(libc::O_RDWR | libc::O_TMPFILE), STOP);
    }

    #[test]
    fn only_mappings_that_reach_a_file_stop() {
        let (both, read) = (libc::PROT_READ | libc::PROT_WRITE, libc::PROT_READ);
        assert_eq!(maps(both, libc::MAP_SHARED), STOP);
        assert_eq!(maps(both, libc::MAP_SHARED_VALIDATE), STOP);
        assert_eq!(maps(both, libc::MAP_PRIVATE), ALLOW);
        assert_eq!(maps(read, libc::MAP_SHARED), ALLOW);
        assert_eq!(maps(both, libc::MAP_SHARED | libc::MAP_ANONYMOUS), ALLOW);
    }

    #[test]
    fn ioctls_of_terminals_pass() {
        assert_eq!(native(libc::SYS_ioctl, [0, 0x5401, 0, 0, 0, 0]), ALLOW);
        assert_eq!(native(libc::SYS_ioctl, [0, 0x4004_9409, 0, 0, 0, 0]), STOP);
        assert_eq!(native(libc::SYS_ioctl, [0, 0x401c_5820, 0, 0, 0, 0]), STOP);
    }

    #[test]
    fn every_call_of_the_table_can_stop_and_others_pass() {
        let all = [!libc::MAP_ANONYMOUS.cast_unsigned(); 6];
        for (number, call) in CALLS {
            let wanted = if *number == libc::SYS_ioctl {
                ALLOW
            } else {
                STOP
            };
            assert_eq!(native(*number, all), wanted, "{call:?}");
        }
        for number in [libc::SYS_read, libc::SYS_futex, libc::SYS_close, 1000] {
            assert_eq!(native(number, all), ALLOW);
        }
    }

    #[test]
    fn other_conventions_are_told() {
        let foreign = STOP | u32::from(FOREIGN);
        assert_eq!(verdict(0x4000_0003, 4, [0; 6]), foreign);
        assert_eq!(native(0x4000_0001, [0; 6]), foreign);
    }
}
