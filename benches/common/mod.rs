//! What the benchmarks share: rows, samplers, checks and the measuring protocols.

// Each benchmark uses a part.
#![allow(dead_code)]

pub mod batched;
pub mod cases;
pub mod measure;
pub mod rows;

use sortless::Level;

/// The level to measure: the best one, or what `SORTLESS_LEVEL` names.
pub fn level() -> Level {
    match Level::from_env() {
        Ok(level) => level.unwrap_or_default(),
        Err(error) => panic!("{error}"),
    }
}

/// The processor's name, where the system tells.
pub fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|l| l.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    match (field("model name"), field("cpu family"), field("model\t")) {
        (Some(name), Some(family), Some(model)) => {
            format!("{name} (family {family}, model {model})")
        }
        _ => format!("an unnamed {} processor", std::env::consts::ARCH),
    }
}

/// Today's date in UTC.
pub fn date() -> String {
    let now = std::time::SystemTime::now();
    let days = now.duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs() / 86_400);
    // Days since 0000-03-01, then whole 400-year eras; a year that begins in March ends with the leap day.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + carry)
}
