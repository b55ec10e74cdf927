//! Block logs on disk, in the format of dm-log-writes, version 1.
//!
//! Source: `drivers/md/dm-log-writes.c` and
//! `Documentation/admin-guide/device-mapper/log-writes.rst` of the Linux kernel. A superblock
//! sector, then for each entry one sector with its header (a mark's text follows the header in the
//! same sector), then the entry's data. All numbers are little-endian; `sector` and `nr_sectors`
//! count sectors of the size that the superblock names.
//!
//! The format has no completion of a flush. A completion is stored as a mark, `untorn:flush-done
//! N`; in a log without such marks every flush completes at once.

use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::{BlockLog, BlockOp, Mark};

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;
const HEADER: usize = 32;
const FLUSH_DONE: &str = "untorn:flush-done ";
const SYSCALL: &str = "untorn:syscall ";
const ACKNOWLEDGED: &str = "untorn:acknowledged";
const DISTURBED: &str = "untorn:disturbed";

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Reading failed, or the log ends in the middle of an entry.
    #[error("entry {entry}: {source}")]
    Read {
        /// Number of the entry, from 0.
        entry: u64,
        /// What went wrong.
        source: io::Error,
    },
    /// The first sector is no superblock of this format.
    #[error("not a dm-log-writes log of version 1 (magic {magic:#x}, version {version})")]
    NotALog {
        /// The number found where the magic should stand.
        magic: u64,
        /// The number found where the version should stand.
        version: u64,
    },
    /// An entry says something that cannot be.
    #[error("entry {entry}: {what}")]
    Entry {
        /// Number of the entry, from 0.
        entry: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// Writes `log` with sectors of `sector` bytes.
///
/// # Errors
/// Those of `to`; `InvalidInput` when a write does not lie on sector boundaries.
pub fn write_log(log: &BlockLog, sector: u32, to: &mut impl Write) -> io::Result<()> {
    let sector_bytes = u64::from(sector);
    let mut block = vec![0; sector as usize];
    block[..8].copy_from_slice(&MAGIC.to_le_bytes());
    block[8..16].copy_from_slice(&VERSION.to_le_bytes());
    block[16..24].copy_from_slice(&(log.ops.len() as u64).to_le_bytes());
    block[24..28].copy_from_slice(&sector.to_le_bytes());
    to.write_all(&block)?;
    for op in &log.ops {
        let text;
        let (offset, bytes, flags, payload): (u64, u64, u64, &[u8]) = match op {
            BlockOp::Write { offset, data } => (*offset, data.len() as u64, 0, data),
            BlockOp::Flush { .. } => (0, 0, FLUSH, &[]),
            BlockOp::Discard { offset, bytes } => (*offset, *bytes, DISCARD, &[]),
            BlockOp::FlushDone { number } => {
                text = format!("{FLUSH_DONE}{number}");
                (0, 0, MARK, text.as_bytes())
            }
            BlockOp::Mark(mark) => {
                text = match mark {
                    Mark::Syscall(call) => format!("{SYSCALL}{call}"),
                    Mark::Acknowledged => ACKNOWLEDGED.to_owned(),
                    Mark::Disturbed => DISTURBED.to_owned(),
                    Mark::Other(text) => text.to_string(),
                };
                (0, 0, MARK, text.as_bytes())
            }
        };
        if offset % sector_bytes != 0 || bytes % sector_bytes != 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("write of {bytes} bytes at {offset} is not on {sector}-byte sectors"),
            ));
        }
        block.fill(0);
        let in_header = if flags == MARK {
            payload.len().min(block.len() - HEADER)
        } else {
            0
        };
        let data_len = if flags == MARK {
            in_header
        } else {
            payload.len()
        } as u64;
        block[..8].copy_from_slice(&(offset / sector_bytes).to_le_bytes());
        block[8..16].copy_from_slice(&(bytes / sector_bytes).to_le_bytes());
        block[16..24].copy_from_slice(&flags.to_le_bytes());
        block[24..32].copy_from_slice(&data_len.to_le_bytes());
        block[HEADER..HEADER + in_header].copy_from_slice(&payload[..in_header]);
        to.write_all(&block)?;
        if flags != MARK {
            to.write_all(payload)?;
        }
    }
    Ok(())
}

/// Reads a log and its sector size.
///
/// A FUA write becomes a write and a flush that covers it, as a loop device would send it. The
/// superblock's entry count is not relied on, since recorders renew it only at flushes; the log
/// ends where the entries do.
///
/// # Errors
/// See [`LogError`].
pub fn read_log(from: &mut impl Read) -> Result<(BlockLog, u32), LogError> {
    let mut head = [0; HEADER];
    let fail = |entry| move |source| LogError::Read { entry, source };
    from.read_exact(&mut head).map_err(fail(0))?;
    let (magic, version) = (number(&head, 0), number(&head, 8));
    let sector = u32::from_le_bytes([head[24], head[25], head[26], head[27]]);
    let sane = sector.is_power_of_two() && (512..=65536).contains(&sector);
    if magic != MAGIC || version != VERSION || !sane {
        return Err(LogError::NotALog { magic, version });
    }
    let mut block = vec![0; sector as usize];
    from.read_exact(&mut block[HEADER..]).map_err(fail(0))?;

    let mut log = BlockLog::default();
    let mut flushes = 0;
    let mut explicit_completions = false;
    let mut entry = 0;
    while read_sector(from, &mut block).map_err(fail(entry))? {
        let flags = number(&block, 16);
        let data_len =
            usize::try_from(number(&block, 24)).map_err(|_too_large| LogError::Entry {
                entry,
                what: "data too long",
            })?;
        let offset = number(&block, 0)
            .checked_mul(u64::from(sector))
            .ok_or(LogError::Entry {
                entry,
                what: "sector out of range",
            })?;
        let bytes = number(&block, 8)
            .checked_mul(u64::from(sector))
            .ok_or(LogError::Entry {
                entry,
                what: "number of sectors out of range",
            })?;
        // A sector of zeros follows the last entry when the log was preallocated.
        if flags == 0 && bytes == 0 && data_len == 0 {
            break;
        }
        if flags & MARK != 0 {
            let text = block
                .get(HEADER..HEADER + data_len)
                .ok_or(LogError::Entry {
                    entry,
                    what: "mark longer than its sector",
                })?;
            let op = parse_mark(&String::from_utf8_lossy(text));
            explicit_completions |= matches!(op, BlockOp::FlushDone { .. });
            log.ops.push(op);
            entry += 1;
            continue;
        }
        // The kernel flushes before it writes (REQ_PREFLUSH), so the flush comes first.
        if flags & FLUSH != 0 {
            log.ops.push(BlockOp::Flush { number: flushes });
            flushes += 1;
        }
        if flags & DISCARD != 0 {
            log.ops.push(BlockOp::Discard { offset, bytes });
        } else if bytes > 0 {
            if data_len as u64 != bytes {
                return Err(LogError::Entry {
                    entry,
                    what: "length of data and sectors differ",
                });
            }
            let mut data = vec![0; data_len];
            from.read_exact(&mut data).map_err(fail(entry))?;
            log.ops.push(BlockOp::Write {
                offset,
                data: data.into(),
            });
        }
        if flags & FUA != 0 {
            log.ops.push(BlockOp::Flush { number: flushes });
            flushes += 1;
        }
        entry += 1;
    }
    if !explicit_completions {
        complete_at_once(&mut log);
    }
    Ok((log, sector))
}

fn complete_at_once(log: &mut BlockLog) {
    let ops = std::mem::take(&mut log.ops);
    for op in ops {
        let flush = if let BlockOp::Flush { number } = op {
            Some(number)
        } else {
            None
        };
        log.ops.push(op);
        log.ops
            .extend(flush.map(|number| BlockOp::FlushDone { number }));
    }
}

fn parse_mark(text: &str) -> BlockOp {
    let done = text
        .strip_prefix(FLUSH_DONE)
        .and_then(|number| number.parse().ok());
    if let Some(number) = done {
        return BlockOp::FlushDone { number };
    }
    BlockOp::Mark(match text {
        ACKNOWLEDGED => Mark::Acknowledged,
        DISTURBED => Mark::Disturbed,
        _ => match text.strip_prefix(SYSCALL) {
            Some(call) => Mark::Syscall(call.into()),
            None => Mark::Other(text.into()),
        },
    })
}

fn number(block: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Fills `block`; false at the clean end of the input.
fn read_sector(from: &mut impl Read, block: &mut [u8]) -> io::Result<bool> {
    let mut done = 0;
    while done < block.len() {
        match from.read(&mut block[done..]) {
            Ok(0) if done == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// An [`Arc`] of zeros, for tests and discards.
pub(crate) fn zeros(bytes: usize) -> Arc<[u8]> {
    vec![0; bytes].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_op() -> impl Strategy<Value = BlockOp> {
        prop_oneof![
            (0u64..100, 1usize..5, any::<u8>()).prop_map(|(at, sectors, byte)| BlockOp::Write {
                offset: at * 512,
                data: vec![byte; sectors * 512].into()
            }),
            (0u64..100, 1u64..5).prop_map(|(at, count)| BlockOp::Discard {
                offset: at * 512,
                bytes: count * 512
            }),
            "[a-z# 0-9]{1,20}".prop_map(|text| BlockOp::Mark(Mark::Syscall(text.into()))),
            Just(BlockOp::Mark(Mark::Acknowledged)),
            Just(BlockOp::Mark(Mark::Disturbed)),
        ]
    }

    proptest! {
        #[test]
        fn writing_and_reading_are_inverse(
            ops in prop::collection::vec(any_op(), 0..20), overlap in 0usize..4
        ) {
            let mut log = BlockLog { ops };
            log.ops.insert(0, BlockOp::Flush { number: 0 });
            let place = (1 + overlap).min(log.ops.len());
            log.ops.insert(place, BlockOp::FlushDone { number: 0 });
            let mut file = Vec::new();
            write_log(&log, 512, &mut file).unwrap();
            prop_assert_eq!(read_log(&mut &file[..]).unwrap(), (log, 512));
        }

        #[test]
        fn a_log_cut_anywhere_is_read_or_refused(cut in 0usize..4000) {
            let log = BlockLog { ops: vec![
                BlockOp::Write { offset: 512, data: vec![3; 1024].into() },
                BlockOp::Flush { number: 0 },
                BlockOp::FlushDone { number: 0 },
            ] };
            let mut file = Vec::new();
            write_log(&log, 512, &mut file).unwrap();
            let cut = cut.min(file.len());
            match read_log(&mut &file[..cut]) {
                Ok((read, _)) => prop_assert!(log.ops.starts_with(&read.ops[..1.min(read.ops.len())])),
                Err(error) => prop_assert!(error.to_string().contains("entry")),
            }
        }
    }

    /// Laid out by hand after `struct log_write_super` and `struct log_write_entry` of the kernel.
    #[test]
    fn a_foreign_log_is_read() {
        let mut file = vec![0; 512];
        file[..8].copy_from_slice(&0x006a_7366_7773_6872_u64.to_le_bytes());
        file[8] = 1;
        file[24..28].copy_from_slice(&512u32.to_le_bytes());
        let mut entry = vec![0; 512];
        entry[0] = 9; // sector
        entry[8] = 1; // nr_sectors
        entry[16] = 1 | 2; // FLUSH and FUA
        entry[24..26].copy_from_slice(&512u16.to_le_bytes());
        file.extend(&entry);
        file.extend([5; 512]);
        let mut mark = vec![0; 512];
        mark[16] = 8;
        mark[24] = 3;
        mark[32..35].copy_from_slice(b"end");
        file.extend(&mark);
        let (log, sector) = read_log(&mut &file[..]).unwrap();
        assert_eq!(sector, 512);
        assert_eq!(
            log.ops,
            vec![
                BlockOp::Flush { number: 0 },
                BlockOp::FlushDone { number: 0 },
                BlockOp::Write {
                    offset: 9 * 512,
                    data: vec![5; 512].into()
                },
                BlockOp::Flush { number: 1 },
                BlockOp::FlushDone { number: 1 },
                BlockOp::Mark(Mark::Other("end".into())),
            ]
        );
    }

    #[test]
    fn another_file_is_refused() {
        let error = read_log(&mut &[7; 4096][..]).unwrap_err();
        assert!(matches!(error, LogError::NotALog { .. }), "{error}");
    }
}
