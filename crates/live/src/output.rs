//! The output of a command, read as it comes: the first and the last megabyte are kept, bytes in between are left out. Memory,
//! disk use and failure messages stay bounded, however much a command prints.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::thread::JoinHandle;
use weir_base::not_started;

/// Bytes kept of the beginning, and as many of the end.
const KEPT: usize = 1 << 20;
/// Bytes of the end that a failure message may show.
const TOLD: usize = 2048;
/// Lines of the end that a failure message shows.
const LAST_LINES: usize = 5;
/// Bytes read at once: what a pipe holds (pipe(7)).
const READ: usize = 64 << 10;

/// Output that is being read.
pub(crate) struct Output(JoinHandle<io::Result<VecDeque<u8>>>);

impl Output {
    /// Reads into a file at `path`. The two returned ends are a command's stdout and stderr; reading goes on until no process
    /// holds them.
    ///
    /// # Errors
    /// The file cannot be made, or no thread started.
    pub(crate) fn into_file(path: &Path) -> io::Result<(Output, [Stdio; 2])> {
        let file = File::create(path)?;
        let (reader, writer) = io::pipe()?;
        let ends = [writer.try_clone()?.into(), writer.into()];
        let read = move || keep(reader, file);
        let thread =
            std::thread::Builder::new().name("weir-output".into()).spawn(read).map_err(not_started)?;
        Ok((Output(thread), ends))
    }

    /// Waits until all output is read. Returns the last lines.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn end(self) -> io::Result<String> {
        let end = self.0.join().unwrap_or_else(|_| Err(io::Error::other("reading its output panicked")))?;
        let end = Vec::from(end);
        let cut = end.len() == TOLD;
        let text = String::from_utf8_lossy(&end);
        // A first line that may be cut is left out, unless it is the only one.
        let whole = if cut { text.split_once('\n').map_or(&*text, |(_, rest)| rest) } else { &*text };
        let lines: Vec<&str> = whole.lines().collect();
        Ok(lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"))
    }
}

/// Reads to the end, even if writing fails. Returns the last [`TOLD`] bytes.
fn keep(mut output: PipeReader, mut file: File) -> io::Result<VecDeque<u8>> {
    let (mut first, mut left_out, mut failed) = (0, 0u64, None);
    let (mut last, mut end) = (VecDeque::new(), VecDeque::new());
    let mut buffer = vec![0; READ];
    loop {
        let bytes = match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => &buffer[..count],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        push(&mut end, bytes, TOLD);
        let (begin, rest) = bytes.split_at(bytes.len().min(KEPT - first));
        first += begin.len();
        left_out += push(&mut last, rest, KEPT);
        // Reading goes on after a failed write: a command whose output is no longer read would block.
        failed = failed.or(file.write_all(begin).err());
    }
    if left_out > 0 {
        failed = failed.or(writeln!(file, "\n[weir left {left_out} bytes out here]").err());
    }
    let (front, back) = last.as_slices();
    failed = failed.or(file.write_all(front).and_then(|()| file.write_all(back)).err());
    failed.map_or(Ok(end), Err)
}

/// Appends bytes and keeps the last `most` of all. Returns how many bytes were dropped.
fn push(last: &mut VecDeque<u8>, bytes: &[u8], most: usize) -> u64 {
    last.extend(bytes);
    let gone = last.len().saturating_sub(most);
    last.drain(..gone);
    gone as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of the file and the last lines, after a command has printed this.
    fn kept(printed: &[&[u8]]) -> (Vec<u8>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.txt");
        let file = File::create(&path).unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        let thread = std::thread::spawn(move || keep(reader, file));
        printed.iter().for_each(|bytes| writer.write_all(bytes).unwrap());
        drop(writer);
        let told = Output(thread).end().unwrap();
        (std::fs::read(path).unwrap(), told)
    }

    #[test]
    fn output_of_up_to_two_megabytes_is_kept_whole() {
        let all = [b"begin\n".to_vec(), b"x".repeat(2 * KEPT - 11), b"\nend\n".to_vec()].concat();
        let (file, told) = kept(&[&all]);
        assert!(file == all);
        assert_eq!(told, "end");
    }

    #[test]
    fn the_first_and_the_last_part_of_longer_output_are_kept() {
        let (file, told) =
            kept(&[b"begin\n", &b"0123456789abcde\n".repeat(5 * KEPT / 16), b"no\nsuch luck\n"]);
        assert_eq!(file.len(), 2 * KEPT + b"\n[weir left 3145747 bytes out here]\n".len());
        assert!(file.starts_with(b"begin\n0123") && file.ends_with(b"no\nsuch luck\n"));
        // 6 and 13 bytes are printed around five megabytes, and two are kept.
        assert!(file.windows(36).any(|part| part == b"\n[weir left 3145747 bytes out here]\n"));
        assert!(told.ends_with("\nno\nsuch luck") && told.lines().count() == LAST_LINES, "{told}");
    }

    #[test]
    fn a_line_without_end_is_shown_in_part() {
        let (_, told) = kept(&[&b"y".repeat(4 * KEPT)]);
        assert_eq!(told, "y".repeat(TOLD));
        assert_eq!(kept(&[]), (vec![], String::new()));
    }
}
