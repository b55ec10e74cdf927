//! Matrices: certificates side by side as data, page and table.

mod common;

use common::{certificate, control, result};
use untorn_report::{GuestTimes, Matrix, MatrixPart, matrix_table, write_matrix_html};
use untorn_spec::{Expected, Verdict, ViolationKind};

/// A kernel with one profile, whose control was caught or not.
fn part(name: &str, profile: &str, caught: bool) -> MatrixPart {
    let found: &[ViolationKind] = if caught { &[ViolationKind::Empty] } else { &[] };
    let mut certificate = certificate(
        profile,
        Expected::Holds,
        vec![
            result(profile, "two-files", Expected::Holds, Verdict::Holds),
            control(profile, "control-exchange-without-fsync", true, found),
        ],
    );
    certificate.kernel.guest = Some("QEMU <7>, emulation".to_owned());
    MatrixPart {
        name: name.to_owned(),
        folder: name.replace(':', "-"),
        certificate,
        times: GuestTimes {
            guests: 1,
            boot_seconds: 2.5,
            first_case_seconds: 3.0,
            seconds: 20.0,
        },
        recovery_seconds: vec![(profile.to_owned(), 2.0)],
    }
}

fn matrix() -> Matrix {
    let parts = [
        part("debian:6.1", "ext4", true),
        part("debian:7.3", "xfs", false),
    ];
    Matrix::new(&["ext4", "xfs"], &parts, 30.0)
}

#[test]
fn the_whole_is_as_good_as_its_worst_kernel() {
    let matrix = matrix();
    assert_eq!(matrix.verdict, Verdict::HarnessBroken);
    let rows: Vec<Verdict> = matrix.kernels.iter().map(|row| row.verdict).collect();
    assert_eq!(rows, [Verdict::Holds, Verdict::HarnessBroken]);
    let [tried, untried] = &matrix.kernels[0].cells[..] else {
        panic!("{matrix:?}")
    };
    assert_eq!((tried.controls_caught, tried.controls), (1, 1));
    assert!(tried.exhaustive && tried.recoveries > 0);
    assert!(tried.recoveries_per_second > 0.0);
    assert_eq!(untried.verdict, Verdict::Inconclusive);
    let nothing = Matrix::new(&["ext4"], &[], 0.0);
    assert_eq!(nothing.verdict, Verdict::Inconclusive);
}

#[test]
fn a_matrix_comes_back_from_its_file() {
    let matrix = matrix();
    let json = serde_json::to_string(&matrix).unwrap();
    assert!(json.contains(r#""name":"untorn-matrix""#));
    assert_eq!(serde_json::from_str::<Matrix>(&json).unwrap(), matrix);
}

#[test]
fn the_page_needs_nothing_else_and_escapes_what_it_shows() {
    let mut page = Vec::new();
    write_matrix_html(&mut page, &matrix()).unwrap();
    let page = String::from_utf8(page).unwrap();
    for text in [
        "debian:6.1",
        "harness-broken",
        "boot 2.5 s",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains("debian-6.1/") && page.contains("/report.html"));
    assert!(!page.contains("QEMU <7>") && !page.contains("src="));
}

#[test]
fn the_table_has_a_line_per_kernel_and_the_reasons_below() {
    let table = matrix_table(&matrix());
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("kernel      ext4"));
    let first = lines.next().unwrap();
    assert!(
        first.starts_with("debian:6.1  holds (exhaustive, 1/1 controls, "),
        "{table}"
    );
    assert!(table.contains("\ndebian:7.3 xfs: "), "{table}");
}
