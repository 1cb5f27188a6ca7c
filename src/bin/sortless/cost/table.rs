//! The tables of `sortless cost`.

use super::measure::Section;
use crate::failure::Failure;
use crate::output::{Out, grouped, three};
use sortless::Level;

/// For people.
pub fn print(
    section: &Section,
    tokens_per_second: Option<f64>,
    level: Level,
    out: &mut Out,
) -> Result<(), Failure> {
    let Section { vocab, shape, dtype, threads, floor_read, floor_exp, cells } = section;
    let (vocab, s) = (grouped(*vocab as u64), if *threads == 1 { "" } else { "s" });
    out.line(format_args!("{shape}, {vocab} tokens, {dtype}, {threads} thread{s}, level {level}"))?;
    out.line("  sampler         us/row  ns/token  x read  x exp  times faster than a sort")?;
    let floor = |name, us: f64| {
        let ns = us * 1e3 / section.vocab as f64;
        let (read, exp) = (three(us / floor_read), three(us / floor_exp));
        format!("  {name:<12}  {:>8}  {ns:>8.3}  {read:>6}  {exp:>5}", three(us))
    };
    out.line(floor("floor read", *floor_read))?;
    out.line(floor("floor exp", *floor_exp))?;
    for cell in cells {
        let line = floor(&cell.sampler, cell.us_per_row);
        out.line(format_args!("{line}  {:>7}", three(cell.x_sort)))?;
    }
    if let Some(speed) = tokens_per_second {
        let step = 1e6 / speed;
        let share = |us: f64| format!("{}%", three(us / step * 100.0));
        let list = cells.iter().map(|c| format!("{} {}", c.sampler, share(c.us_per_row)));
        let list = list.collect::<Vec<_>>().join(", ");
        let step = three(step);
        out.line(format_args!("  share of a decode step at {speed} tokens/s ({step} us): {list}"))?;
    }
    out.line("")
}

/// For programs.
pub fn csv(sections: &[Section]) -> String {
    let mut text = String::from(
        "vocab,shape,dtype,threads,sampler,us_per_row,ns_per_token,x_floor_read,x_floor_exp,x_sort\n",
    );
    for c in sections.iter().flat_map(|s| &s.cells) {
        let names = format!("{},{},{},{},{}", c.vocab, c.shape, c.dtype, c.threads, c.sampler);
        let numbers = [c.us_per_row, c.ns_per_token, c.x_floor_read, c.x_floor_exp, c.x_sort];
        text += &names;
        for number in numbers {
            text += &format!(",{number:.4}");
        }
        text.push('\n');
    }
    text
}
