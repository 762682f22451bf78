//! The table, on the terminal and as `BENCHMARKS.md`.

use super::samples::Samples;
use crate::sh;
use anyhow::Result;
use std::time::Duration;

/// One measurement, ready to be read.
#[derive(Debug)]
pub(super) struct Row {
    what: String,
    peer: String,
    ours: String,
    ratio: String,
    target: String,
    met: &'static str,
}

const COLUMNS: [&str; 6] = ["what", "peer", "ours", "ratio", "target", "met"];

impl Row {
    /// A time beside a peer's, judged by their ratio.
    pub(super) fn beside(what: &str, peer: (&str, &Samples), ours: &Samples, most: f64) -> Self {
        let (name, theirs) = peer;
        let ratio = ours.ratio(theirs);
        Self {
            what: what.to_owned(),
            peer: format!("{name}: {}", times(theirs)),
            ours: times(ours),
            ratio: format!("{ratio:.2}×"),
            target: format!("≤ {most}×"),
            met: verdict(ratio <= most),
        }
    }

    /// A time beside a peer's that nobody promised anything about.
    pub(super) fn compared(what: &str, peer: (&str, &Samples), ours: &Samples) -> Self {
        Self { target: "none".to_owned(), met: "", ..Self::beside(what, peer, ours, f64::INFINITY) }
    }

    /// A value that has to stay below a limit of its own.
    pub(super) fn within(what: &str, value: f64, unit: &str, most: f64) -> Self {
        Self {
            what: what.to_owned(),
            peer: "none".to_owned(),
            ours: format!("{value:.1} {unit}"),
            ratio: String::new(),
            target: format!("≤ {most} {unit}"),
            met: verdict(value <= most),
        }
    }

    /// A value that has to reach a limit of its own.
    pub(super) fn at_least(what: &str, value: f64, unit: &str, least: f64) -> Self {
        Self {
            ours: format!("{value:.0} {unit}"),
            target: format!("≥ {least} {unit}"),
            met: verdict(value >= least),
            ..Self::within(what, value, unit, least)
        }
    }

    /// A value shown for comparison, without a target.
    pub(super) fn only(what: &str, value: f64, unit: &str) -> Self {
        Self { target: "none".to_owned(), met: "", ..Self::within(what, value, unit, f64::INFINITY) }
    }

    /// Names what stands beside the value.
    pub(super) fn peer(mut self, peer: impl Into<String>, ratio: f64) -> Self {
        self.peer = peer.into();
        self.ratio = format!("{ratio:.2}×");
        self
    }

    /// What could not be measured.
    pub(super) fn missing(what: &str, why: &str) -> Self {
        let (what, target) = (what.to_owned(), String::new());
        Self { what, peer: String::new(), ours: format!("not measured: {why}"), ratio: String::new(), target, met: "" }
    }

    fn cells(&self) -> [&str; 6] {
        [&self.what, &self.peer, &self.ours, &self.ratio, &self.target, self.met]
    }
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}

/// The median, with the tenth percentile as the floor that noise cannot explain.
pub(super) fn times(samples: &Samples) -> String {
    format!("{} (p10 {})", short(samples.p50()), short(samples.percentile(10)))
}

fn short(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 1.0 { format!("{:.0} µs", millis * 1e3) } else { format!("{millis:.2} ms") }
}

/// The rows as a Markdown table.
pub(super) fn table(rows: &[Row]) -> String {
    grid(&std::iter::once(COLUMNS).chain(rows.iter().map(Row::cells)).collect::<Vec<_>>())
}

/// A Markdown table with its head, aligned so that it reads as well on a terminal.
pub(super) fn grid<const N: usize>(all: &[[&str; N]]) -> String {
    let width = |column: usize| all.iter().map(|cells| cells[column].chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (index, cells) in all.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            let padding = " ".repeat(width(column) - cell.chars().count());
            text.push_str("| ");
            text.push_str(cell);
            text.push_str(&padding);
            text.push(' ');
        }
        text.push_str("|\n");
        if index == 0 {
            text.extend((0..N).map(|column| format!("|{}", "-".repeat(width(column) + 2))));
            text.push_str("|\n");
        }
    }
    text
}

/// Where and when, without anything that would tell whose machine it is.
pub(super) struct Machine {
    pub(super) cpu: String,
    pub(super) kernel: String,
    pub(super) rustc: String,
    pub(super) date: String,
}

impl Machine {
    pub(super) fn here() -> Result<Self> {
        let cores = std::thread::available_parallelism()?;
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let model = model.map_or(std::env::consts::ARCH, |(_, model)| model.trim());
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(Self {
            cpu: format!("{cores} cores ({model})"),
            kernel: format!("{} {}", std::env::consts::OS, kernel.trim()),
            rustc: sh::capture(&mut sh::command("rustc", &["--version"]))?.trim().to_owned(),
            date: sh::capture(&mut sh::command("date", &["-u", "+%Y-%m-%d"]))?.trim().to_owned(),
        })
    }
}

/// One part of `BENCHMARKS.md`, which can be measured by itself.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) body: String,
}

impl Section {
    fn text(&self, machine: &Machine) -> String {
        let Machine { cpu, kernel, rustc, date } = machine;
        let Self { title, body } = self;
        format!("## {title}\n\nMeasured {date} on {cpu}, {kernel}, {rustc}.\n\n{body}")
    }
}

/// All of `BENCHMARKS.md`.
pub(super) fn document(sections: &[Section], machine: &Machine) -> String {
    let mut text = String::from("# Benchmarks\n\n");
    text.push_str(
        "Written by `cargo xtask bench`; run it to have your own machine's numbers. Peer and haft take turns within\n\
         one run, so the ratio is what to compare; a time alone says more about the machine. Medians, with the tenth\n\
         percentile beside them.\n",
    );
    for section in sections {
        text.push('\n');
        text.push_str(&section.text(machine));
    }
    text
}

/// `BENCHMARKS.md` with one section measured anew, and the others as they are.
pub(super) fn renewed(document: &str, section: &Section, machine: &Machine) -> String {
    let fresh = section.text(machine);
    let start = |title: &str| document.find(&format!("\n## {title}\n")).map(|at| at + 1);
    let Some(from) = start(section.title) else { return format!("{document}\n{fresh}") };
    let rest = &document[from..];
    let to = rest.find("\n## ").map_or(document.len(), |at| from + at);
    format!("{}{fresh}{}", &document[..from], &document[to..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(micros: u64) -> Samples {
        Samples::new(vec![Duration::from_micros(micros); 3])
    }

    fn machine() -> Machine {
        Machine {
            cpu: "2 cores (x)".to_owned(),
            kernel: "linux 6".to_owned(),
            rustc: "rustc 1".to_owned(),
            date: "2026-01-02".to_owned(),
        }
    }

    #[test]
    fn a_section_is_renewed_alone() {
        let section = |title, body: &str| Section { title, body: body.to_owned() };
        let (first, last) = (section("First", "1\n"), section("Last", "2\n"));
        let whole = document(&[first, last], &machine());
        for (title, old) in [("First", "1\n"), ("Last", "2\n")] {
            let now = renewed(&whole, &section(title, "new\n"), &machine());
            assert_eq!(now, whole.replace(&format!("\n{old}"), "\nnew\n"));
        }
        assert_eq!(renewed(&whole, &section("Last", "2\n"), &machine()), whole);
        assert!(renewed(&whole, &section("More", "3\n"), &machine()).starts_with(&whole));
    }

    #[test]
    fn the_document_says_what_was_met_and_what_was_not() {
        let rows = [
            Row::beside("start", ("true", &samples(900)), &samples(4500), 4.0),
            Row::within("memory", 12.34, "MB", 20.0),
            Row::only("fsync", 80.0, "µs").peer("disk", 1.5),
            Row::missing("grep", "no rg"),
        ];
        let machine = machine();
        let text = document(&[Section { title: "All", body: table(&rows) }], &machine);
        let lines: Vec<&str> = text.lines().skip(6).collect();
        assert_eq!(
            lines,
            [
                "## All",
                "",
                "Measured 2026-01-02 on 2 cores (x), linux 6, rustc 1.",
                "",
                "| what   | peer                      | ours                  | ratio | target  | met     |",
                "|--------|---------------------------|-----------------------|-------|---------|---------|",
                "| start  | true: 900 µs (p10 900 µs) | 4.50 ms (p10 4.50 ms) | 5.00× | ≤ 4×    | NOT MET |",
                "| memory | none                      | 12.3 MB               |       | ≤ 20 MB | met     |",
                "| fsync  | disk                      | 80.0 µs               | 1.50× | none    |         |",
                "| grep   |                           | not measured: no rg   |       |         |         |",
            ]
        );
    }
}
