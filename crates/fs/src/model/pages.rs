//! What files hold: reading, writing and truncating.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::log::Change;
use super::node::{Ino, PAGE_BYTES, Page, bytes_before_end, clipped, page_of, page_start};
use super::state::State;

impl State {
    pub(crate) fn size(&self, ino: Ino) -> u64 {
        self.live(ino)
            .and_then(|live| live.size)
            .unwrap_or_else(|| self.base.size(ino))
    }

    fn set_size(&mut self, ino: Ino, size: u64) {
        self.live_mut(ino).size = Some(size);
        self.log.record(Change::Size(ino, size));
    }

    /// A page; `None` for zeros.
    fn page(&self, ino: Ino, index: u64) -> Option<Page> {
        let live = self.live(ino);
        if let Some(page) = live.and_then(|live| live.pages.get(&index)) {
            return Some(Rc::clone(page));
        }
        let base_pages = live.map_or(u64::MAX, |live| live.base_pages);
        (index < base_pages)
            .then(|| self.base.page(ino, index))
            .flatten()
    }

    fn set_page(&mut self, ino: Ino, index: u64, page: Page) {
        let live = self.live_mut(ino);
        live.pages.insert(index, Rc::clone(&page));
        self.log.record(Change::Page(ino, index, page));
    }

    /// Reads at an offset and says how many bytes there were.
    pub(crate) fn read_at(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> usize {
        let size = self.size(ino);
        let mut done = 0;
        while done < buffer.len() {
            let (index, within) = page_of(offset + done as u64);
            let in_page = bytes_before_end(index, size).saturating_sub(within);
            let count = in_page.min(buffer.len() - done);
            if count == 0 {
                break;
            }
            let target = &mut buffer[done..done + count];
            let page = self.page(ino, index);
            let held = page.as_deref().and_then(|page| page.get(within..));
            let held = held.unwrap_or_default();
            let copied = held.len().min(count);
            target[..copied].copy_from_slice(&held[..copied]);
            target[copied..].fill(0);
            done += count;
        }
        done
    }

    /// Writes at an offset, page by page: each page is a step, and the size after it another, as
    /// the kernel moves the end of the file after each page it has filled.
    pub(crate) fn write_at(&mut self, ino: Ino, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (index, within) = page_of(at);
            let count = (PAGE_BYTES - within).min(bytes.len() - done);
            let size = self.size(ino);
            // Behind the end there are zeros, whatever a page once held there.
            let old = if page_start(index) < size {
                self.page(ino, index)
            } else {
                None
            };
            let mut page = old.as_deref().unwrap_or_default().to_vec();
            page.resize(page.len().max(within + count), 0);
            page[within..within + count].copy_from_slice(&bytes[done..done + count]);
            self.set_page(ino, index, Rc::from(page));
            done += count;
            let end = offset + done as u64;
            if end > size {
                self.set_size(ino, end);
            }
        }
    }

    pub(crate) fn truncate(&mut self, ino: Ino, size: u64) {
        let old = self.size(ino);
        if size == old {
            return;
        }
        self.set_size(ino, size);
        if size > old {
            return;
        }
        // What lay behind the new end is zeros from now on, should the file grow again.
        let (last, within) = page_of(size);
        if within > 0
            && let Some(page) = self.page(ino, last)
            && page.len() > within
        {
            self.set_page(ino, last, clipped(page, within));
        }
        let gone = size.div_ceil(PAGE_BYTES as u64);
        let mut pages = BTreeSet::new();
        let live = self.live_mut(ino);
        let base_pages = live.base_pages;
        live.base_pages = base_pages.min(gone);
        pages.extend(live.pages.split_off(&gone).into_keys());
        let mut of_base = BTreeSet::new();
        self.base.add_pages(ino, &mut of_base);
        pages.extend(of_base.range(gone..).filter(|&&index| index < base_pages));
        for index in pages {
            self.log.record(Change::Page(ino, index, Page::default()));
        }
    }
}
