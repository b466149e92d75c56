//! Writing below a folder that may have come from somebody else. A file is there whole or not at all, and nothing is ever
//! written outside: names that lead out are refused, and no symbolic link below the folder is followed. (The folder itself
//! may be named by a link.)

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

/// Prefix of the names of weir's own temporary files and folders: drafts, and older versions that are being replaced.
pub(crate) const OURS: &str = ".weir-";
/// Prefix of the name of a draft: a file or folder that is not complete.
pub(crate) const DRAFT: &str = ".weir-draft.";

/// Writes a file, replacing an earlier one of its name; `name` is its path below `root`, with slashes.
///
/// # Errors
/// The name leads out of the folder or through a symbolic link, or the file system refused.
pub fn atomic_write(root: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    atomic_write_with(root, name, |file| file.write_all(bytes))
}

/// The same for a file that is written piece by piece: a large one need not be in memory as a whole.
///
/// # Errors
/// As [`atomic_write`], and the errors of `write`.
pub(crate) fn atomic_write_with(
    root: &Path,
    name: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    if !is_name(file) {
        return Err(leads_out(name));
    }
    let folder = create_folder(root, folder)?;
    let draft = folder.join(format!("{DRAFT}{file}"));
    let written = remove_if_there(&draft)
        .and_then(|()| write(&mut File::create_new(&draft)?))
        .and_then(|()| fs::rename(&draft, folder.join(file)));
    if written.is_err() {
        // A draft that cannot be removed does no harm.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Makes the folder of this path below `root`, with slashes, if it does not exist. An empty path is `root` itself.
///
/// # Errors
/// As [`atomic_write`].
pub fn create_folder(root: &Path, name: &str) -> io::Result<PathBuf> {
    if !root.is_dir() {
        fs::create_dir_all(root)?;
    }
    let mut path = root.to_owned();
    for part in name.split('/').filter(|_| !name.is_empty()) {
        if !is_name(part) {
            return Err(leads_out(name));
        }
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_dir() => {}
            Ok(there) if there.is_symlink() => {
                let what = format!("{} is a symbolic link, which weir does not follow", path.display());
                return Err(io::Error::new(ErrorKind::InvalidInput, what));
            }
            Ok(_) => {
                let what = format!("{} is not a folder", path.display());
                return Err(io::Error::new(ErrorKind::NotADirectory, what));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => make(&path)?,
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Makes a folder; several threads may make the same.
fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && !path.is_symlink() => Ok(()),
        other => other,
    }
}

/// Removes a file or a link, if there is one.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Whether a part of a path is a name, and neither `..` nor `/`.
fn is_name(part: &str) -> bool {
    let mut parts = Path::new(part).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == part)
}

fn leads_out(name: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{name:?} is outside the folder"))
}

/// Removes a folder, a file or a link, if there is one.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => remove_if_there(path),
        other => other,
    }
}

/// Waits until all files below a folder are on disk.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync(&entry.path())?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder);
    Ok(())
}

/// Waits until the names in a folder are on disk. Errors are ignored: some systems cannot sync a folder.
pub(crate) fn sync_folder(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_written_with_the_folders_that_it_needs_and_replaces_what_was_there() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("a/b");
        for text in ["one", "two"] {
            atomic_write(&root, "c/d/e.txt", text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(root.join("c/d/e.txt")).unwrap(), text);
        }
        assert_eq!(fs::read_dir(root.join("c/d")).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        for name in ["../x", "a/../../x", "/tmp/x", "a//x", "a/.", "..", "", "a/"] {
            assert_eq!(
                atomic_write(&root, name, b"x").unwrap_err().kind(),
                ErrorKind::InvalidInput,
                "{name:?}"
            );
        }
        assert!(!place.path().join("x").exists());
    }

    #[test]
    fn links_in_the_folder_are_not_followed_and_a_link_to_the_folder_is() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("root"), place.path().join("outside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("mine.txt"), "mine").unwrap();
        symlink(&outside, root.join("report")).unwrap();
        symlink(outside.join("mine.txt"), root.join("index.html")).unwrap();
        symlink(outside.join("mine.txt"), root.join(".weir-draft.index.html")).unwrap();
        assert_eq!(atomic_write(&root, "report/x", b"x").unwrap_err().kind(), ErrorKind::InvalidInput);
        atomic_write(&root, "index.html", b"ours").unwrap();
        assert_eq!(fs::read(root.join("index.html")).unwrap(), b"ours");
        assert_eq!(fs::read(outside.join("mine.txt")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        let named = place.path().join("named");
        symlink(&root, &named).unwrap();
        atomic_write(&named, "b.txt", b"b").unwrap();
        assert!(root.join("b.txt").is_file() && named.is_symlink());
    }
}
