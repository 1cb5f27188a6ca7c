//! Pipes that begin in the middle, end early, or never seem to end.

use crate::files::{Folder, matrix, npy, real, text};
use crate::run::{command, sortless, sortless_reading};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

#[test]
fn standard_input_is_a_file_like_any_other() {
    let path = real("whisper_f16.npy");
    let bytes = std::fs::read(&path).unwrap();
    let from_file = sortless(&["sample", &path, "--json"]).fine().out;
    assert_eq!(sortless_reading(&["sample", "-", "--json"], &bytes).fine().out, from_file);
    let inspected = sortless_reading(&["inspect", "-", "--json", "--row", "2"], &bytes).fine();
    assert_eq!(inspected.json().len(), 1);

    // What came before the end stays.
    let rows = ["sample", "-", "--json", "--temperature", "0"];
    let ran = sortless_reading(&rows, &bytes[..bytes.len() - 7]);
    let ran = ran.unusable("standard input: truncated: ends within row 25 of 26 rows of 51864");
    assert_eq!(ran.json().len(), 25);
    let ran = sortless_reading(&rows, &[&bytes[..], b"x"].concat());
    assert_eq!(ran.unusable("data after the last row").json().len(), 26);
    sortless_reading(&rows, b"").unusable("standard input: is empty");
    sortless_reading(&rows, b"\x93NUM").unusable("standard input: is not a .npy file");
}

#[test]
fn a_broken_pipe_ends_quietly() {
    let folder = Folder::new();
    // More output than any pipe holds.
    let rows = folder.file("rows.npy", &matrix(&vec![vec![0.0, 1.0]; 60_000]));
    let cost = ["cost", "--vocab", "50", "--shape", "equal", "--rounds", "1"];
    let runs: [&[&str]; 5] = [
        &["sample", &rows, "--json"],
        &["sample", &rows],
        &["inspect", &rows],
        &cost,
        &["completions", "bash"],
    ];
    for args in runs {
        let mut command = command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::with_capacity(64, child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        drop(stdout);
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), err.as_str()), (Some(0), ""), "{args:?}");
    }
}

/// The largest resident set of a run, by looking again and again.
#[cfg(target_os = "linux")]
fn peak_kilobytes(args: &[&str], input: Stdio, code: i32) -> u64 {
    let mut command = command(args);
    command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(line) = status.lines().find(|line| line.starts_with("VmHWM:")) {
            let number = line.split_whitespace().nth(1).and_then(|n| n.parse().ok());
            peak = peak.max(number.unwrap_or(0));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(code), "{args:?}");
            return peak;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_file_takes_no_more_memory_than_a_row() {
    let folder = Folder::new();
    let path = folder.path("large.npy");
    // 512 MiB of zeros that take no room: 2,048 rows of 131,072 halves.
    let header = npy("<f2", "(2048, 131072)", &[]);
    std::fs::write(&path, &header).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(header.len() as u64 + (512 << 20)).unwrap();
    let path = text(&path);
    let args = ["sample", &path, "--temperature", "0", "--json", "--threads", "2"];
    let peak = peak_kilobytes(&args, Stdio::null(), 0);
    assert!((1..50 << 10).contains(&peak), "{peak} kB");
}

#[test]
fn json_requests_are_answered_line_by_line() {
    let requests = concat!(
        r#"{"init":{"version":"v2","tau":1.5}}"#,
        "\n\n",
        r#"{"step":{"version":"v2","tau":1.5,"state_mu":3.0,"state_steps":0,"logits":[2.0,null,2.0],"uniform":0.75}}"#,
        "\n",
        r#"{"step":{"version":"v2","tau":-1}}"#,
        "\n",
        r#"{"leap":{}}"#,
        "\nnonsense\n",
        r#"{"init":{},"step":{}}"#,
        "\n",
        r#"{"preview":{"version":"v1","tau":2,"state_mu":4,"state_steps":0,"weights":[1,2]}}"#
    );
    let ran = sortless_reading(&["json"], requests.as_bytes()).bad();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 7, "{}", ran.out);
    assert_eq!(lines[0], r#"{"state_mu":3.0,"state_steps":0}"#);
    assert!(
        lines[1].starts_with(r#"{"token":2,"kept_tokens":2,"probability":0.5"#),
        "{}",
        lines[1]
    );
    for (line, words) in [(2, "tau"), (3, "leap"), (4, "not a JSON request"), (5, "one key")] {
        assert!(lines[line].starts_with(r#"{"error":""#) && lines[line].contains(words), "{line}");
    }
    assert!(lines[6].contains("vocabulary"), "{}", lines[6]);
    sortless_reading(&["json"], b"").fine();
    sortless_reading(&["json"], b"\xff\xfe\n").bad();
}

#[test]
fn json_answers_before_the_next_request_comes() {
    use std::io::Write;
    let mut command = command(&["json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for tau in [1.0, 2.0] {
        writeln!(stdin, r#"{{"init":{{"version":"v1","tau":{tau}}}}}"#).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{{\"state_mu\":{:?},\"state_steps\":0}}\n", 2.0 * tau));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn json_lines_that_are_hostile_cost_one_answer_each() {
    let step = |logits: &str| {
        let head =
            r#"{"step":{"version":"v2","tau":1.5,"state_mu":3,"state_steps":0,"uniform":0.5"#;
        format!("{head},\"logits\":{logits}}}}}\n").into_bytes()
    };
    let deep = |open: &str, close: &str| open.repeat(100_000) + "1" + &close.repeat(100_000);
    let lists = deep("[", "]");
    let mut requests = Vec::new();
    for (line, words) in [
        (format!("{lists}\n").into_bytes(), "not a JSON request"),
        (format!("{}\n", deep("{\"step\":", "}")).into_bytes(), "not a JSON request"),
        (format!("{{\"step\":{lists}}}\n").into_bytes(), "recursion limit"),
        (step(&lists), "recursion limit"),
        (step(&format!("[{}0]", "0,".repeat(1 << 20))), "this one has 1048577"),
        (step(&format!("\"{}\"", "x".repeat(1 << 20))), "logits: must be a list"),
        (b"{\"step\":{\"version\":\"\xff\"}}\n".to_vec(), "not a JSON request"),
        (b"{\"\xff\":{}}\n".to_vec(), "not a JSON request"),
        (b"{\"init\":{\"version\":\"\\ud800\",\"tau\":1}}\n".to_vec(), "not a JSON request"),
        (b"\xef\xbb\xbf{\"init\":{\"version\":\"v2\",\"tau\":1}}\n".to_vec(), "not a JSON request"),
        (b"\0\n".to_vec(), "not a JSON request"),
        (step("[1, 2]"), "token"),
    ] {
        requests.push((line, words));
    }
    let input: Vec<u8> = requests.iter().flat_map(|(line, _)| line.clone()).collect();
    let ran = sortless_reading(&["json"], &input).bad();
    assert_eq!(ran.out.lines().count(), requests.len());
    for (answer, (_, words)) in ran.out.lines().zip(&requests) {
        assert!(answer.len() < 1000 && answer.contains(words), "{words}: {answer}");
    }
}

/// What a line of 100 MB can take: a list's element is at least two bytes of text and 32 of memory, and the list may be
/// held twice while it grows.
#[cfg(target_os = "linux")]
#[test]
fn a_request_of_100_megabytes_takes_bounded_memory() {
    let folder = Folder::new();
    for (name, element, limit) in [("digits", "0", 1), ("numbers", "0,", 4), ("lists", "[],", 4)] {
        let list = element.repeat(100_000_000 / element.len());
        let line = format!("{{\"one_shot\":{{\"logits\":[{list}0]}}}}\n");
        let path = folder.file(name, line.as_bytes());
        let input = std::fs::File::open(path).unwrap();
        let peak = peak_kilobytes(&["json"], input.into(), 1);
        println!("{name}: {} MB", peak >> 10);
        assert!((1..limit << 20).contains(&peak), "{name}: {peak} kB");
    }
}
